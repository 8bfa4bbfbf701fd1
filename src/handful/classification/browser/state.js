// What the page knows: items, what the model says about them, and what a person said.

import { counted } from "./elements.js";

/**
 * A class, a class that the catalogue does not have, none of the classes, unfit to be labelled, or left open.
 * @typedef {"confirmed" | "corrected" | "given" | "new" | "none" | "bad" | "skip"} Kind
 */

/**
 * What a person said about an item; without a class the label is null.
 * @typedef {{ kind: Kind, label: string | null }} Decision
 */

/**
 * What is asked: one item is a question, several are a sheet. The label is what all of them have now, null for none of
 * the classes, or if the labels differ; choices are the likeliest classes, the best first. If it asks for a name,
 * nobody has named such items yet. The oddest are those least like anything seen. An answer corrects about so many
 * labels. One that was marked on a sheet is asked about after it, and those that wait come next.
 * @typedef {object} Ask
 * @property {number[]} items
 * @property {string | null} label
 * @property {(string | null)[]} labels
 * @property {string[]} choices
 * @property {number} corrects
 * @property {boolean} marked
 * @property {boolean} asks_name
 * @property {boolean} oddest
 * @property {number[]} waiting
 */

/**
 * @typedef {object} Progress
 * @property {string} said
 * @property {[number, number, number]} right expected share of right labels, and an interval
 * @property {number} answers_left
 * @property {boolean} may_stop
 * @property {number} seen
 * @property {number} n_items
 * @property {number} decisions
 * @property {boolean} done
 */

/**
 * A group of items without a name.
 * @typedef {object} Proposal
 * @property {string} name
 * @property {number | null} group
 * @property {number[]} items
 * @property {number} cohesion
 * @property {string | null} nearest
 */

/**
 * Places of items and examples on the map, and the classes of the examples.
 * @typedef {{ items: [number, number][], examples: [number, number][], codes: number[] }} Places
 */

/**
 * Lists have one entry per item, classes are numbers in `classes`.
 * @typedef {object} Data
 * @property {string} title
 * @property {[string, string]} words what an item is called, and several
 * @property {string[]} names
 * @property {string[] | null} texts
 * @property {(string | null)[] | null} pictures
 * @property {number} left_out
 * @property {string[] | null} groups
 * @property {number[]} group
 * @property {string[]} classes
 * @property {string[]} called names of the classes as shown
 * @property {number} n_known classes of the catalogue; those after them are new
 * @property {number[]} label
 * @property {number[]} certainty
 * @property {number[]} second
 * @property {number[]} second_certainty
 * @property {number[]} unknown
 * @property {number[]} rejected
 * @property {number[]} doubtful
 * @property {string[] | null} coarse
 * @property {number[]} coarse_certainty
 * @property {[number, string | null][]} given items that had a label from the start
 * @property {number[]} first items to look at first
 * @property {Record<number, any[]>} why
 * @property {Record<number, number>} nearest
 * @property {[number, string | null, string][]} examples class, content and name
 * @property {[number, number, number | null][]} present class, expected count, chance
 * @property {[number, number, number | null][][]} present_by_group
 * @property {string[][]} warnings of each group
 * @property {Proposal[]} proposals
 * @property {number[]} proposal number of the proposal of each item, 0 for none
 * @property {Places | null} map
 * @property {number} number of the state, for a review
 * @property {number} n_steps
 * @property {[number, string, string | null, string | null][]} decisions item, kind, label, and the model's label then
 * @property {string[]} notices sentences that a person should read once
 * @property {number[]} changed
 * @property {boolean} undid
 * @property {number} back
 * @property {boolean} explains
 * @property {Ask | null} ask
 * @property {Progress} progress
 * @property {string} proof what the server of this review knows, and nobody else
 * @property {string} out
 * @property {boolean} from_nothing whether there is no catalogue: what a person named are the examples
 * @property {number[]} not_named items that are like nothing named so far
 * @property {string[]} offered names said so far, and others that may occur, if there is no catalogue
 * @property {string} catalogue the file that keeps the answers
 * @property {string[]} offers what else can be written in the end
 */

/** The label of an item that is like nothing named so far: no class has an empty name. */
export const UNNAMED = "";
export const UNNAMED_WORDS = "Not named yet";

/**
 * A number of what the batch has: photographs, sentences or rows.
 * @param {number} count
 */
export const things = (count) => counted(count, ...data.words);

/** What is said of an item that has no class. */
export const noneWords = () => (data.from_nothing ? "No class" : "None of these");

export const data = /** @type {Data} */ ({});

/** @type {Map<number, Decision>} */
export const decisions = new Map();

/** Items, the least certain first. @type {number[]} */
export let byDoubt = [];
/** Items, those that look most like none of the classes first. @type {number[]} */
export let byUnknown = [];
/** Places among the examples, by class. @type {Map<number, number[]>} */
export let examplesByClass = new Map();
/** @type {Map<string, string>} */
let calledOf = new Map();
/** @type {Set<string>} */
let inCatalogue = new Set();
/** @type {Set<number>} */
let unnamed = new Set();

/**
 * Take over a state, whole or in part, and make what is looked up in it.
 * @param {Partial<Data>} found
 */
export function adopt(found) {
  Object.assign(data, found);
  data.offered ??= [];
  data.offers ??= [];
  data.words ??= ["item", "items"];
  unnamed = new Set(data.not_named);
  inCatalogue = new Set(data.classes.slice(0, data.n_known));
  calledOf = new Map(data.classes.map((label, code) => [label, data.called[code]]));
  examplesByClass = new Map();
  data.examples.forEach(([code], place) => {
    const places = examplesByClass.get(code);
    if (places === undefined) examplesByClass.set(code, [place]);
    else places.push(place);
  });
  byDoubt = [...data.names.keys()].sort((one, other) => data.certainty[one] - data.certainty[other] || one - other);
  byUnknown = [...byDoubt].sort((one, other) => data.unknown[other] - data.unknown[one]);
  decisions.clear();
  for (const [item, label] of data.given) decisions.set(item, { kind: "given", label });
  for (const [item, kind, label, was] of data.decisions ?? []) {
    const isClass = kind === "class";
    const said = /** @type {Kind} */ (isClass ? (label === was ? "confirmed" : "corrected") : kind);
    decisions.set(item, { kind: said, label });
  }
}

export const nItems = () => data.names.length;

/**
 * Whether a class is one of the catalogue.
 * @param {string} label
 */
export const isKnown = (label) => inCatalogue.has(label);

/**
 * What a class is called on the page; its own name is for files.
 * @param {string} label
 */
export const called = (label) => calledOf.get(label) ?? label;

/**
 * The class that fits an item best; null while no class has a name.
 * @param {number} item
 * @returns {string | null}
 */
export const classOf = (item) => data.classes[data.label[item]] ?? null;

/** @param {number} item */
export const isRejected = (item) => Boolean(data.rejected[item]);

/**
 * What the model says about an item; null for none of the classes.
 * @param {number} item
 */
export function answerOf(item) {
  if (unnamed.has(item)) return UNNAMED;
  return isRejected(item) ? null : classOf(item);
}

// A runner-up with less than this chance is not shown.
const LEAST_SHOWN = 0.0005;

/**
 * What the model says second: the runner-up; of an item like none of the classes, the least bad class.
 * @param {number} item
 * @returns {string | null}
 */
export function secondOf(item) {
  if (isRejected(item)) return classOf(item);
  return data.second[item] >= 0 && data.second_certainty[item] >= LEAST_SHOWN ? data.classes[data.second[item]] : null;
}

/** @param {number} item */
export const certaintyOf = (item) => (isRejected(item) ? data.unknown[item] : data.certainty[item]);

/** @param {number} item */
export const secondCertaintyOf = (item) => (isRejected(item) ? data.certainty[item] : data.second_certainty[item]);

/**
 * What a person said about an item, unless it was left open.
 * @param {number} item
 */
export function saidOf(item) {
  const decision = decisions.get(item);
  return decision !== undefined && decision.kind !== "skip" ? decision : undefined;
}

/**
 * The label of an item: a person's, otherwise the model's.
 * @param {number} item
 */
export function labelOf(item) {
  const said = saidOf(item);
  return said === undefined ? answerOf(item) : said.label;
}

/** @param {number} item */
export const wordsOf = (item) => (data.texts ? data.texts[item] : data.names[item]);

/**
 * How many of these items have each label, the most frequent first.
 * @param {Iterable<number>} items
 * @returns {Map<string | null, number>}
 */
export function countedLabels(items) {
  const counts = new Map();
  for (const item of items) counts.set(labelOf(item), (counts.get(labelOf(item)) ?? 0) + 1);
  return new Map([...counts].sort((one, other) => other[1] - one[1]));
}
