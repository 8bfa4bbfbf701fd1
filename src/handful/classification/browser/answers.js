// What a person says: about what is asked, about the item that is chosen, about a group, or about items on the map.

import { counted, make } from "./elements.js";
import { choose, current, draw } from "./drawing.js";
import { HISTORY, filter, isAsking, opened, picked, refilter } from "./filter.js";
import { askClass, askSure } from "./dialogs.js";
import { move, shown } from "./list.js";
import { named } from "./names.js";
import { image } from "./pictures.js";
import { askedNow, chanceOf, chanceOfNone, subject } from "./question.js";
import { decide, mergeClasses, removeClass, similarTo, takeBack, undo } from "./server.js";
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
  secondOf,
  things,
  wordsOf,
} from "./state.js";

/** @typedef {import("./server.js").Said} Said */

// Pictures of each class where two may become one.
const SHOWN_OF_EACH = 6;

/**
 * @param {string} label
 * @returns {Said}
 */
export const saidFor = (label) => (isKnown(label) ? "class" : "new");

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
  const isNone = !sheet.accepted.length;
  if (!(await decide(sheet.accepted, isNone ? "accept" : said, isNone ? null : label, sheet.exceptions))) return;
  draw();
  if (asks) return;
  const here = shown.indexOf(about.items[0]);
  if (shown.length) choose(shown[Math.min(here < 0 ? place : here + 1, shown.length - 1)]);
}

// A class with a smaller chance is not what Enter says.
const LIKELY_ENOUGH = 0.5;

/**
 * Whether one answer is more likely than all others, so that Enter gives it.
 * @param {import("./state.js").Ask} about
 */
export function hasLikely(about) {
  if (isSheet(about) || about.asks_name) return !about.asks_name;
  const [item] = about.items;
  const chance = about.label === null ? chanceOfNone(item) : chanceOf(item, about.label);
  return chance === null ? decisions.has(item) : chance >= LIKELY_ENOUGH;
}

/** Enter: what is shown is right. */
export function confirm() {
  const about = subject();
  if (about === null) {
    if (!isAsking()) move(0);
    return;
  }
  if (!hasLikely(about)) correct();
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
  const question = isSheet(about) ? "What are these " + split(about).accepted.length + "?" : "What is it?";
  askClass(question, { first }, giveName);
}

/** A class that the catalogue does not have; without a catalogue, any. */
export function nameNew() {
  if (subject() === null) return;
  if (data.from_nothing) {
    correct();
    return;
  }
  const question = "A class without any example yet. What is it called?";
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
  oneClass(items, "What are these " + items.length + "?", true);
}

export const openPicks = () => openOf(picked);

export function classOfPicks() {
  oneClass(openPicks(), "What are these " + openPicks().length + "?", false);
}

export async function noneOfPicks() {
  if (await decide(openPicks(), "none", null)) draw();
}

/** Exceptions of sheets that have no answer yet. */
export function waiting() {
  const ask = askedNow();
  return ask !== null && ask.waiting.length ? [...ask.items, ...ask.waiting] : [];
}

/** One class for what belongs together: what was marked, what was chosen in the list, or a group without a name. */
export function answerGroup() {
  if (isAsking()) {
    const waits = waiting();
    if (waits.length > 1) oneClass(waits, "What are these " + waits.length + "?", false);
    return;
  }
  if (picked.size) {
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
      counted(kept, "other") +
      " of the list, answered before, " +
      (kept === 1 ? "stays as it is." : "stay as they are.")
    : "";
  const said = "Confirm " + what + things(items.length) + "?" + rest + " One undo takes it back.";
  askSure(said, "Confirm " + things(items.length), async () => {
    if (await decide(items, label === null ? "none" : saidFor(label), label)) draw();
  });
}

// -- names of classes ------------------------------------------------------------------------------------------------

/**
 * Both classes with pictures, and what becomes of them.
 * @param {string} label
 * @param {string} into
 */
function bothClasses(label, into) {
  const side = (/** @type {string} */ one) => {
    const items = data.names.flatMap((_, item) => (labelOf(item) === one ? [item] : []));
    const shows = items.slice(0, SHOWN_OF_EACH);
    const faces = data.pictures
      ? shows.map((item) => image(data.pictures?.[item] ?? null, "", { style: "face" }))
      : shows.slice(0, 1).map((item) => make("q", { dir: "auto" }, wordsOf(item)));
    return make("p", {}, named(one, "b"), " " + things(items.length) + " ", ...faces);
  };
  return make("div", {}, side(label), side(into));
}

/**
 * Make two classes one, if the person wants that: the button that has the focus goes back.
 * @param {string} label
 * @param {string} into
 */
function askMerge(label, into) {
  const said =
    "Are “" + called(label) + "” and “" + called(into) + "” one class? All will be called “" + called(into) + "”.";
  const merge = async () => {
    if (await mergeClasses(label, into)) refilter({ label: into });
  };
  askSure(said, "Make them one class", merge, { more: bothClasses(label, into), isSafe: false });
}

/** Another name for the class that is listed; that of another class makes both one class, after a question. */
export function renameClass() {
  const label = filter.label;
  if (label === null) return;
  const rename = async (/** @type {string} */ into) => {
    if (data.classes.includes(into)) askMerge(label, into);
    else if (await mergeClasses(label, into)) refilter({ label: into });
  };
  const others = data.classes.filter((other) => other !== label);
  askClass("What is it called?", { first: others, renamed: label }, (name) => withName(name, rename, label));
}

/** The class that is listed is the same as another one. */
export function mergeClass() {
  const label = filter.label;
  if (label === null) return;
  const others = data.classes.filter((other) => other !== label);
  const question = "“" + called(label) + "” is the same as…";
  askClass(question, { first: others, without: label }, (into) => askMerge(label, into));
}

/** The class that is listed is none. */
export function dropClass() {
  const label = filter.label;
  if (label === null) return;
  const n = data.names.filter((_, item) => decisions.get(item)?.label === label).length;
  const said = "Remove “" + called(label) + "”? What you said about " + things(n) + " does not count any more.";
  const drop = async () => {
    if (await removeClass(label)) refilter({ label: null });
  };
  askSure(said, "Remove it", drop, { isSafe: false });
}

// -- an answer that is looked at --------------------------------------------------------------------------------------

/**
 * Change what was said about all that an answer was about.
 * @param {Said} kind
 * @param {string | null} label
 */
export async function changeAnswer(kind, label) {
  if (await decide(opened.items, kind, label)) draw();
}

export const nameAnswer = () =>
  askClass("What are they?", { first: data.classes }, (name) =>
    withName(name, (label) => changeAnswer(saidFor(label), label)),
  );

export async function takeAnswerBack() {
  if (await takeBack(opened.event)) refilter({ show: HISTORY, label: null, proposal: null });
}
