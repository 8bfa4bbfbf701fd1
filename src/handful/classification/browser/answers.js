// What a person says: about what is asked, about the item that is chosen, about a group, or about items on the map.

import { counted } from "./elements.js";
import { choose, current, draw } from "./drawing.js";
import { ASKED, filter, isAsking, picked, refilter } from "./filter.js";
import { askClass, askSure } from "./dialogs.js";
import { move, shown } from "./list.js";
import { askedNow, subject } from "./question.js";
import { decide, mergeClasses, similarTo, splitClass, undo } from "./server.js";
import { isSheet, split } from "./sheet.js";
import {
  UNNAMED,
  answerOf,
  called,
  countedLabels,
  data,
  decisions,
  isKnown,
  labelOf,
  nItems,
  secondOf,
} from "./state.js";

/** @typedef {import("./server.js").Said} Said */

/**
 * @param {string} label
 * @returns {Said}
 */
const saidFor = (label) => (isKnown(label) ? "class" : "new");

/**
 * Go on with a name; one that looks like another is asked about first.
 * @param {string} label
 * @param {(label: string) => unknown} goOn
 * @param {string | null} [renamed] a class that is renamed: its name is wrong, so it is not meant
 */
async function withName(label, goOn, renamed = null) {
  const isThere = data.classes.includes(label) || data.offered.includes(label);
  const [other] = isThere ? [] : (await similarTo(label)).filter((one) => one !== renamed);
  if (other === undefined) {
    goOn(label);
    return;
  }
  askSure(
    "You typed “" + label + "”. Did you mean “" + called(other) + "”?",
    "Yes, " + called(other),
    () => goOn(other),
    {
      no: "No, " + label + " is another class",
      otherwise: () => goOn(label),
    },
  );
}

/**
 * Say what something is called.
 * @param {string} label
 */
export const giveName = (label) => withName(label, (name) => answer(saidFor(name), name));

/**
 * Answer, and go on: to what is asked next, or to the next item of the list.
 * @param {Said} said
 * @param {string | null} label
 */
export async function answer(said, label) {
  const about = subject();
  if (about === null) return;
  const asks = isAsking();
  const sheet = isSheet(about) ? split(about) : { accepted: about.items, exceptions: [] };
  const place = shown.indexOf(current);
  // If all are exceptions, nothing is said about any but that its label is wrong.
  const how = sheet.accepted.length ? said : "accept";
  if (!(await decide(sheet.accepted, how, label, sheet.exceptions))) return;
  draw();
  if (asks) return;
  const here = shown.indexOf(about.items[0]);
  if (shown.length) choose(shown[Math.min(here < 0 ? place : here + 1, shown.length - 1)]);
}

/** Enter: what is shown is right. */
export function confirm() {
  const about = subject();
  if (about === null) {
    if (!isAsking()) move(0);
    return;
  }
  if (about.asks_name) correct();
  else if (about.oddest) void answer("accept", null);
  else if (about.label === null) void answer("none", null);
  else void answer(saidFor(about.label), about.label);
}

/**
 * Take the class with this number.
 * @param {number} place
 */
export function takeChoice(place) {
  const label = subject()?.choices[place];
  if (label !== undefined) void answer(saidFor(label), label);
}

export const sayNone = () => void answer("none", null);

/** Seen, and left open. */
export const leaveOpen = () => void answer("skip", null);

export function sayBad() {
  const about = subject();
  if (about !== null && !isSheet(about)) void answer("bad", null);
}

/** Another class, which is typed. */
export function correct() {
  const about = subject();
  if (about === null) return;
  const field = document.getElementById("name-field");
  if (field !== null) {
    field.focus();
    return;
  }
  const first = about.choices.filter((label) => label !== about.label);
  const question = isSheet(about)
    ? "Which class are these " + split(about).accepted.length + "?"
    : "Which class is it?";
  askClass(question, { first }, giveName);
}

/** A class that the catalogue does not have; without a catalogue, any. */
export function nameNew() {
  if (subject() === null) return;
  if (data.from_nothing) {
    correct();
    return;
  }
  const question = "A class that the catalogue does not have. What is it called?";
  askClass(question, { isNew: true, first: [] }, giveName);
}

/** Take back what was said about the item. */
export async function clear() {
  if (await decide([current], "skip", null)) draw();
}

export async function undoLast() {
  const wasAsking = isAsking();
  if (!(await undo()) || wasAsking) return;
  if (data.back >= 0) choose(data.back);
}

// -- several items at once ------------------------------------------------------------------------------------------

/** @param {Iterable<number>} items */
const openOf = (items) => [...items].filter((item) => !decisions.has(item));

/**
 * One class for several items; those that a person answered stay as they are. What most of them are comes first.
 * @param {number[]} items
 * @param {string} question
 * @param {boolean} isNew
 */
function oneClass(items, question, isNew) {
  if (!items.length) return;
  const labels = [
    ...countedLabels(items).keys(),
    ...items.map(secondOf),
    ...data.present.map(([code]) => data.classes[code]),
  ];
  const first = /** @type {string[]} */ ([...new Set(labels)].filter((label) => label !== null && label !== UNNAMED));
  const say = async (/** @type {string} */ label) => {
    if (await decide(items, saidFor(label), label)) draw();
  };
  askClass(question, { isNew: isNew && !data.from_nothing, first }, (label) => withName(label, say));
}

/** @param {number} place */
export function nameProposal(place) {
  const items = openOf(data.proposals[place].items);
  oneClass(
    items,
    data.proposals[place].name + ", " + counted(items.length, "item") + ". What is the class called?",
    true,
  );
}

export const openPicks = () => openOf(picked);

export function classOfPicks() {
  oneClass(openPicks(), counted(openPicks().length, "item") + " chosen on the map. Which class are they?", false);
}

export async function noneOfPicks() {
  if (await decide(openPicks(), "none", null)) draw();
}

/** Exceptions of sheets that have no answer yet. */
export function waiting() {
  const ask = askedNow();
  return ask !== null && ask.waiting.length ? [...ask.items, ...ask.waiting] : [];
}

/** One class for what belongs together: exceptions that wait, items on the map, or a group without a name. */
export function answerGroup() {
  if (isAsking()) {
    const waits = waiting();
    if (waits.length > 1) oneClass(waits, "Which class are these " + waits.length + " exceptions?", false);
    return;
  }
  if (filter.show === "map" && filter.proposal === null) {
    classOfPicks();
    return;
  }
  const place = filter.proposal !== null ? filter.proposal : current >= 0 ? data.proposal[current] - 1 : -1;
  if (place >= 0) nameProposal(place);
}

/** Items listed that have no answer yet, if all of them have one label. */
export function acceptable() {
  if (isAsking()) return [];
  const open = openOf(shown);
  const labels = new Set(open.map(answerOf));
  return open.length > 1 && labels.size === 1 && !labels.has(UNNAMED) ? open : [];
}

/** Accept the label of all items that are listed. */
export function acceptAll() {
  const items = acceptable();
  if (!items.length) return;
  const label = labelOf(items[0]);
  const what = label === null ? "that none of the classes fits " : "the label of ";
  const kept = shown.length - items.length;
  const rest = kept
    ? " " +
      counted(kept, "other item", "other items") +
      " of the list, answered before, " +
      (kept === 1 ? "stays as it is." : "stay as they are.")
    : "";
  const said = "Confirm " + what + counted(items.length, "item") + "?" + rest + " One undo takes it back.";
  askSure(said, "Confirm " + counted(items.length, "item"), async () => {
    if (await decide(items, label === null ? "none" : saidFor(label), label)) draw();
  });
}

// -- names, without a catalogue -------------------------------------------------------------------------------------

/** Another name for the class that is listed; one that another class has makes both one class. */
export function renameClass() {
  const label = filter.label;
  if (!data.from_nothing || label === null) return;
  const others = data.classes.filter((other) => other !== label);
  const question = "What is “" + called(label) + "” called? The name of another class makes both one class.";
  const rename = async (/** @type {string} */ into) => {
    if (await mergeClasses(label, into)) refilter({ label: into });
  };
  const askFirst = (/** @type {string} */ into) => {
    const both = "“" + called(label) + "” and “" + called(into) + "” one class, “" + called(into) + "”";
    const said = "Make " + both + "? One undo takes it back.";
    if (data.classes.includes(into)) askSure(said, "Make them one class", () => rename(into));
    else void rename(into);
  };
  askClass(question, { first: others, renamed: label }, (name) => withName(name, askFirst, label));
}

/** The class that is listed is two: some of its items lose their name, and are asked about. */
export async function divideClass() {
  const label = filter.label;
  if (!data.from_nothing || label === null) return;
  if (await splitClass(label)) refilter({ show: ASKED, label: null, proposal: null });
}

/** Items of the batch, on the page or not. */
export const nInBatch = () => nItems() + data.left_out;
