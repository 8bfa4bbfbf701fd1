// Names of classes and items as the page shows them.

import { make } from "./elements.js";
import { UNNAMED, UNNAMED_WORDS, called, noneWords } from "./state.js";

/**
 * A name: it breaks after punctuation, not inside a word, and its direction is its own.
 * @param {string | null} text
 * @param {string} [tag]
 */
export function named(text, tag = "bdi") {
  if (text === null) return make(tag, {}, noneWords());
  if (text === UNNAMED) return make(tag, {}, UNNAMED_WORDS);
  const element = make(tag, { dir: "auto" });
  called(text)
    .split(/(?<=[_/.\-\\])/)
    .forEach((part, place) => {
      if (place) element.append(make("wbr", {}));
      element.append(part);
    });
  return element;
}
