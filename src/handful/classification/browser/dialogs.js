// Dialogs: which class it is, and whether a person is sure.

import { byId, dialogOf, inputOf } from "./elements.js";
import { offer, suggestionsFor } from "./suggestions.js";

/** @typedef {import("./elements.js").Child} Child */

/** @typedef {import("./suggestions.js").Offered} Offered */

/** @type {Offered & { answer: (label: string) => void }} */
let asking = { isNew: false, first: [], renamed: null, without: null, answer: () => {} };
let listOptions = () => {};

/**
 * Ask for a class.
 * @param {string} question
 * @param {Partial<Offered> & { first: string[] }} about
 * @param {(label: string) => void} answer
 */
export function askClass(question, { isNew = false, first, renamed = null, without = null }, answer) {
  asking = { isNew, first, renamed, without, answer };
  byId("question").textContent = question;
  inputOf("words").value = renamed ?? "";
  dialogOf("ask").showModal();
  listOptions();
}

/**
 * Ask before something that concerns many items, or between two ways.
 * @param {string} said
 * @param {string} yes
 * @param {() => void} does
 * @param {{ more?: Child, no?: string, otherwise?: () => void, isSafe?: boolean }} [about] what stands below; the other
 *   button; whether Enter may mean yes
 */
export function askSure(said, yes, does, { more = "", no = "Back", otherwise = () => {}, isSafe = true } = {}) {
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
  byId(isSafe ? "sure-yes" : "sure-no").focus();
}

export function listenToDialogs() {
  const take = (/** @type {string} */ label) => {
    dialogOf("ask").close();
    asking.answer(label);
  };
  const suggest = (/** @type {string} */ words) => suggestionsFor(words, asking);
  listOptions = offer(inputOf("words"), byId("options"), suggest, take, { needsWords: () => true });
}
