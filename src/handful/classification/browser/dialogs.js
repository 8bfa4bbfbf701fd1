// Dialogs: which class it is, and whether a person is sure.

import { byId, dialogOf, inputOf, make } from "./elements.js";
import { named } from "./names.js";
import { called, data, decisions } from "./state.js";

/** @typedef {import("./elements.js").Child} Child */

// Classes offered at once.
const MOST_OPTIONS = 12;
// How well a class matches what was typed, the best first.
const RANK = { whole: 0, start: 1, wordStart: 2, inside: 3, fileName: 4, none: -1 };

/** @type {{ isNew: boolean, first: string[], answer: (label: string) => void }} */
let asking = { isNew: false, first: [], answer: () => {} };
/** @type {{ label: string, isNew: boolean }[]} */
let options = [];
let option = 0;

/**
 * @param {string} label
 * @param {string} wanted
 */
function rankOf(label, wanted) {
  const text = called(label).toLowerCase();
  const at = text.indexOf(wanted);
  if (at < 0) return label.toLowerCase().includes(wanted) ? RANK.fileName : RANK.none;
  if (text === wanted) return RANK.whole;
  if (at === 0) return RANK.start;
  return /[\s_\-/.]/.test(text[at - 1]) ? RANK.wordStart : RANK.inside;
}

/**
 * Classes that match the words, the best first; and what was typed, if it is no class yet.
 * @param {string} words
 */
function suggestions(words) {
  const wanted = words.trim().toLowerCase();
  const decided = [...decisions.values()].filter(({ kind }) => kind === "new").map(({ label }) => label);
  const fresh = /** @type {string[]} */ ([...new Set(decided)]);
  const known = asking.isNew ? fresh : [...new Set([...asking.first, ...fresh, ...data.classes])];
  const found = known
    .map((label, place) => ({ label, place, rank: rankOf(label, wanted) }))
    .filter(({ rank }) => rank !== RANK.none)
    .sort((one, other) => one.rank - other.rank || one.place - other.place)
    .slice(0, MOST_OPTIONS)
    .map(({ label }) => ({ label, isNew: false }));
  const exact = data.classes.find((label) => [called(label).toLowerCase(), label.toLowerCase()].includes(wanted));
  if (asking.isNew && exact !== undefined) return [{ label: exact, isNew: false }];
  const isThere = exact !== undefined || found.some(({ label }) => label.toLowerCase() === wanted);
  if (wanted !== "" && !isThere) found.push({ label: words.trim(), isNew: true });
  return found;
}

function drawOptions() {
  options = suggestions(inputOf("words").value);
  const elements = options.map(({ label, isNew }, place) => {
    const text = isNew ? make("span", {}, "New class ", named(label, "b")) : make("span", {}, named(label));
    return make(
      "li",
      { role: "option", id: "option-" + place, "aria-selected": "false", onclick: () => answered(place) },
      text,
    );
  });
  byId("options").replaceChildren(...elements);
  pointAt(0);
}

/** @param {number} place */
function pointAt(place) {
  if (!options.length) {
    inputOf("words").removeAttribute("aria-activedescendant");
    return;
  }
  option = (place + options.length) % options.length;
  [...byId("options").children].forEach((element, at) => element.setAttribute("aria-selected", String(at === option)));
  inputOf("words").setAttribute("aria-activedescendant", "option-" + option);
}

/** @param {number} place */
function answered(place) {
  if (!options.length) return;
  dialogOf("ask").close();
  asking.answer(options[place].label);
}

/**
 * Ask for a class.
 * @param {string} question
 * @param {{ isNew?: boolean, first: string[] }} about whether it is new; the classes that come first
 * @param {(label: string) => void} answer
 */
export function askClass(question, { isNew = false, first }, answer) {
  asking = { isNew, first, answer };
  byId("question").textContent = question;
  inputOf("words").value = "";
  dialogOf("ask").showModal();
  drawOptions();
}

/**
 * Ask before something that concerns many items.
 * @param {string} said
 * @param {string} yes
 * @param {() => void} does
 * @param {Child} [more]
 */
export function askSure(said, yes, does, more) {
  byId("sure-said").textContent = said;
  byId("sure-more").replaceChildren(more ?? "");
  byId("sure-yes").textContent = yes;
  byId("sure-yes").onclick = () => {
    dialogOf("sure").close();
    does();
  };
  dialogOf("sure").showModal();
  byId("sure-yes").focus();
}

export function listenToDialogs() {
  byId("sure-no").addEventListener("click", () => dialogOf("sure").close());
  inputOf("words").addEventListener("input", drawOptions);
  inputOf("words").addEventListener("keydown", (event) => {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => pointAt(option + 1),
      ArrowUp: () => pointAt(option - 1),
      Enter: () => answered(option),
    };
    const does = keys[event.key];
    if (does === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  });
}
