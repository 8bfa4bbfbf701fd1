// Dialogs: which class it is, and whether a person is sure.

import { byId, dialogOf, inputOf } from "./elements.js";
import { offer, suggestionsFor } from "./suggestions.js";

/** @typedef {import("./elements.js").Child} Child */

/** @type {{ isNew: boolean, first: string[], renamed: string | null, answer: (label: string) => void }} */
let asking = { isNew: false, first: [], renamed: null, answer: () => {} };
let listOptions = () => {};

/**
 * Ask for a class.
 * @param {string} question
 * @param {{ isNew?: boolean, first: string[], renamed?: string | null }} about whether it is new; the classes that come
 *   first; the class that gets another name
 * @param {(label: string) => void} answer
 */
export function askClass(question, { isNew = false, first, renamed = null }, answer) {
  asking = { isNew, first, renamed, answer };
  byId("question").textContent = question;
  inputOf("words").value = "";
  dialogOf("ask").showModal();
  listOptions();
}

/**
 * Ask before something that concerns many items, or between two ways.
 * @param {string} said
 * @param {string} yes
 * @param {() => void} does
 * @param {{ more?: Child, no?: string, otherwise?: () => void }} [about] what stands below; the other button
 */
export function askSure(said, yes, does, { more = "", no = "Back", otherwise = () => {} } = {}) {
  byId("sure-said").textContent = said;
  byId("sure-more").replaceChildren(more ?? "");
  byId("sure-yes").textContent = yes;
  byId("sure-no").textContent = no;
  const closing = (/** @type {() => void} */ next) => () => {
    dialogOf("sure").close();
    next();
  };
  byId("sure-yes").onclick = closing(does);
  byId("sure-no").onclick = closing(otherwise);
  dialogOf("sure").showModal();
  byId("sure-yes").focus();
}

export function listenToDialogs() {
  const take = (/** @type {string} */ label) => {
    dialogOf("ask").close();
    asking.answer(label);
  };
  const suggest = (/** @type {string} */ words) => suggestionsFor(words, asking);
  listOptions = offer(inputOf("words"), byId("options"), suggest, take, { needsWords: () => asking.renamed !== null });
}
