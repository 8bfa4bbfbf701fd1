// The field in which items without a name get one: it has the focus, so that a person types at once.

import { make } from "./elements.js";
import { giveName, takeChoice, undoLast } from "./answers.js";
import { isSheet, split } from "./sheet.js";
import { data } from "./state.js";
import { offer, suggestionsFor } from "./suggestions.js";

/** @typedef {import("./state.js").Ask} Ask */

/** What was typed about what is asked, so that a mark on a sheet does not take it away. */
let typed = "";
let typedFor = "";

/** A finger has no keys: the keyboard of a phone would hide half of the page. */
const hasKeys = () => matchMedia("(pointer: fine)").matches;

const fieldNow = () => /** @type {HTMLInputElement | null} */ (document.getElementById("name-field"));

/** Whether the person types a name. */
export const isNaming = () => document.activeElement !== null && document.activeElement === fieldNow();

/** Put the focus into the field. */
export const focusName = () => fieldNow()?.focus({ preventScroll: true });

/** Put the focus into the field, unless the person would not type. */
export function startNaming() {
  if (hasKeys() && document.querySelector("dialog[open]") === null) focusName();
}

/** Whether keys 1 to 9 take a name: not if names begin with a digit. */
const digitsChoose = () => !data.offered.some((name) => /^\d/.test(name));

/**
 * @param {Ask} ask
 * @param {KeyboardEvent} event
 */
function shortcut(ask, event) {
  const field = fieldNow();
  if (field === null || field.value !== "") return;
  const place = Number(event.key) - 1;
  const isUndo = (event.ctrlKey || event.metaKey) && event.key === "z";
  if (isUndo) void undoLast();
  else if (/^[1-9]$/.test(event.key) && digitsChoose() && ask.choices[place] !== undefined) takeChoice(place);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

/**
 * The field, with the button that takes what was typed, and the names that match.
 * @param {Ask} ask
 */
export function nameField(ask) {
  const about = ask.items.join(" ");
  if (about !== typedFor) typed = "";
  typedFor = about;
  const field = /** @type {HTMLInputElement} */ (
    make("input", {
      id: "name-field",
      autocomplete: "off",
      role: "combobox",
      "aria-labelledby": "asked-title",
      "aria-controls": "name-options",
      "aria-expanded": "false",
      placeholder: "Type a name",
      dir: "auto",
    })
  );
  field.value = typed;
  const list = make("ul", { id: "name-options", class: "options", role: "listbox", "aria-labelledby": "asked-title" });
  const redraw = offer(
    field,
    list,
    (words) => (words.trim() === "" ? [] : suggestionsFor(words, { first: ask.choices })),
    giveName,
    { hidesNew: true },
  );
  field.addEventListener("input", () => {
    typed = field.value;
  });
  field.addEventListener("keydown", (event) => shortcut(ask, event));
  redraw();
  const n = split(ask).accepted.length;
  const text = !isSheet(ask) ? "Name it" : n ? "Name " + (n === ask.items.length ? "all " : "the other ") + n : "Next";
  const takes = () => {
    const [first] = suggestionsFor(field.value, { first: ask.choices });
    if (field.value.trim() !== "") giveName(first.label);
    else focusName();
  };
  const button = make("button", { type: "button", class: "main", onclick: takes }, text, make("kbd", {}, "Enter"));
  return make("div", { class: "naming" }, field, button, list);
}
