// Names of classes and items as the page shows them.

import { make } from "./elements.js";
import { NONE, called } from "./state.js";

/**
 * A name: it breaks after punctuation, not inside a word, and its direction is its own.
 * @param {string | null} text
 * @param {string} [tag]
 */
export function named(text, tag = "bdi") {
  if (text === null) return make(tag, {}, NONE);
  const element = make(tag, { dir: "auto" });
  called(text)
    .split(/(?<=[_/.\-\\])/)
    .forEach((part, place) => {
      if (place) element.append(make("wbr", {}));
      element.append(part);
    });
  return element;
}
