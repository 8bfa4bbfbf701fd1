// A field in which a class is typed: names that match are listed below it, arrows go to one, and Enter takes it.

import { make } from "./elements.js";
import { named } from "./names.js";
import { called, data, decisions } from "./state.js";

/** @typedef {{ label: string, isNew: boolean }} Suggestion */

/**
 * What a name is asked for: whether it must be new; the classes that come first; the class that gets another name,
 * whose own is in the field; one that is not meant.
 * @typedef {{ isNew: boolean, first: string[], renamed: string | null, without: string | null }} Offered
 */

// Classes offered at once.
const MOST_OPTIONS = 12;
// How well a class matches what was typed, the best first.
const RANK = { whole: 0, start: 1, wordStart: 2, inside: 3, fileName: 4, none: -1 };

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

/** Classes that a person named in this review. */
function namedByPerson() {
  const decided = [...decisions.values()].filter(({ kind }) => kind === "new").map(({ label }) => label);
  return /** @type {string[]} */ ([...new Set(decided)]);
}

/** All names that there are, and those that are offered without a catalogue. */
const allNames = () => [...data.classes, ...data.offered];

/**
 * Classes that match the words, the best first; and what was typed, if it is no class yet.
 * @param {string} words
 * @param {Partial<Offered> & { first: string[] }} about
 * @returns {Suggestion[]}
 */
export function suggestionsFor(words, { isNew = false, first, renamed = null, without = null }) {
  const name = words.normalize("NFC").trim();
  const wanted = name.toLowerCase();
  if (name === renamed) return [];
  const fresh = namedByPerson();
  const isMeant = (/** @type {string} */ label) => label !== renamed && label !== without;
  const names = allNames().filter(isMeant);
  const known = (isNew ? fresh : [...new Set([...first, ...fresh, ...names])]).filter(isMeant);
  const found = known
    .map((label, place) => ({ label, place, rank: rankOf(label, wanted) }))
    .filter(({ rank }) => rank !== RANK.none)
    .sort((one, other) => one.rank - other.rank || one.place - other.place)
    .slice(0, MOST_OPTIONS)
    .map(({ label }) => ({ label, isNew: false }));
  const exact = names.find((label) => [called(label).toLowerCase(), label.toLowerCase()].includes(wanted));
  if (isNew && exact !== undefined) return [{ label: exact, isNew: false }];
  const isThere = exact !== undefined || found.some(({ label }) => label.toLowerCase() === wanted);
  if (wanted === "" || isThere || without !== null) return found;
  // Who corrects a name means what was typed.
  return renamed === null ? [...found, { label: name, isNew: true }] : [{ label: name, isNew: true }, ...found];
}

/**
 * List suggestions below a field, and listen to it; returns what lists them again.
 * @param {HTMLInputElement} field
 * @param {HTMLElement} list
 * @param {(words: string) => Suggestion[]} suggest
 * @param {(label: string) => void} take
 * @param {{ hidesNew?: boolean, needsWords?: () => boolean }} [how] whether a new name alone is not listed: it is what
 *   the field has; whether Enter takes nothing before something is typed, or an arrow has chosen
 */
export function offer(field, list, suggest, take, { hidesNew = false, needsWords = () => false } = {}) {
  /** @type {Suggestion[]} */
  let options = [];
  let option = 0;

  /** @param {number} place */
  const pointAt = (place) => {
    field.setAttribute("aria-expanded", String(!list.hidden));
    option = list.hidden ? 0 : place;
    [...list.children].forEach((element, at) => element.setAttribute("aria-selected", String(at === option)));
    if (list.hidden || option < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", list.id + "-" + option);
  };

  const redraw = () => {
    options = suggest(field.value);
    list.hidden = options.every(({ isNew }) => isNew && hidesNew);
    list.replaceChildren(
      ...options.map(({ label, isNew }, place) => {
        const text = isNew ? make("span", {}, "New class ", named(label, "b")) : make("span", {}, named(label));
        const about = { role: "option", id: list.id + "-" + place, "aria-selected": "false" };
        const element = make("li", about, text);
        element.addEventListener("click", () => take(label));
        return element;
      }),
    );
    pointAt(needsWords() && field.value.trim() === "" ? -1 : 0);
  };

  field.addEventListener("input", redraw);
  field.addEventListener("keydown", (event) => {
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => pointAt(option + 1 < options.length ? option + 1 : 0),
      ArrowUp: () => pointAt((option > 0 ? option : options.length) - 1),
      Enter: () => {
        if (options.length && option >= 0) take(options[option].label);
      },
    };
    const does = keys[event.key];
    if (does === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  });
  return redraw;
}
