// What is known about one item: its label, why it has it, and examples of its classes.

import { percent, make, meter, joined, spelled } from "./elements.js";
import { current, draw } from "./drawing.js";
import { named } from "./names.js";
import { image } from "./pictures.js";
import {
  UNNAMED,
  adopt,
  answerOf,
  certaintyOf,
  classOf,
  data,
  decisions,
  examplesByClass,
  isRejected,
  secondCertaintyOf,
  secondOf,
  things,
  wordsOf,
} from "./state.js";

/** @typedef {import("./elements.js").Child} Child */
/** @typedef {import("./state.js").Kind} Kind */

// Examples of a class beside an item.
const EXAMPLES_BESIDE = 3;
// What a class adds above the finer one must be at least this much to be shown, and a runner-up have this chance.
const LEAST_COARSE = 0.005;
const LEAST_SECOND = 0.005;

const SAID = {
  confirmed: "Confirmed: ",
  corrected: "Corrected to ",
  given: "Given: ",
  none: "You said: ",
  new: "New class: ",
  bad: "You said: bad",
  skip: "Left open",
};

/**
 * The item itself: its picture or its words, its name and its group.
 * @param {number} item
 * @param {boolean} [isSharp] whether its picture is shown as sharp as it is
 * @returns {HTMLElement[]}
 */
export function contentOf(item, isSharp = false) {
  const pieces = [];
  if (data.pictures)
    pieces.push(image(data.pictures[item], data.names[item], { style: "large", grows: true, isSharp }));
  else pieces.push(make("blockquote", { dir: "auto" }, wordsOf(item)));
  if (data.pictures || !wordsOf(item).startsWith(data.names[item]))
    pieces.push(make("small", { class: "quiet name" }, named(data.names[item])));
  if (data.groups) {
    const group = data.groups[data.group[item]];
    pieces.push(make("div", {}, make("small", { class: "quiet" }, named(group))));
  }
  return pieces;
}

/** @param {Kind} kind */
const wordsFor = (kind) => (kind === "new" && data.from_nothing ? "You named it " : SAID[kind]);

/**
 * What a person said, and what the model says.
 * @param {number} item
 * @returns {HTMLElement[]}
 */
export function labelsOf(item) {
  const pieces = [];
  const decision = decisions.get(item);
  if (decision !== undefined) {
    const hasLabel = decision.kind !== "bad" && decision.kind !== "skip";
    pieces.push(make("p", { class: "done" }, wordsFor(decision.kind), hasLabel ? named(decision.label) : ""));
  }
  // What a person said needs no chance.
  if (decision !== undefined && decision.kind !== "skip") return pieces;
  const style = data.doubtful[item] || isRejected(item) ? "doubt" : "";
  pieces.push(make("div", { class: style }, labelHead(answerOf(item), chanceOfLabel(item)), ...modelOf(item)));
  return pieces;
}

/**
 * The chance of the model's label of an item; nothing for an item that is not named yet.
 * @param {number} item
 */
export const chanceOfLabel = (item) => (answerOf(item) === UNNAMED ? "" : percent(certaintyOf(item)));

/**
 * A label, and its chance.
 * @param {string | null} label
 * @param {string} chance
 */
export const labelHead = (label, chance) =>
  make("span", { class: "head" }, named(label, "b"), make("span", {}, chance));

/**
 * What the model says about an item below its label: how sure it is, the runner-up, and the coarse class.
 * @param {number} item
 * @returns {HTMLElement[]}
 */
export function modelOf(item) {
  if (answerOf(item) === UNNAMED) return []; // that nothing fits it is all there is to say
  const pieces = [meter(certaintyOf(item))];
  const second = secondOf(item);
  if (second !== null && (isRejected(item) || secondCertaintyOf(item) >= LEAST_SECOND)) {
    const how = isRejected(item) ? "most like " : "or ";
    const said = make("small", { class: "quiet" }, how, named(second), ", " + percent(secondCertaintyOf(item)));
    pieces.push(make("div", {}, said));
  }
  return [...pieces, make("div", {}, ...coarseOf(item))];
}

/**
 * The coarse class of an item, where its classes cannot be told apart.
 * @param {number} item
 * @returns {HTMLElement[]}
 */
function coarseOf(item) {
  if (!data.coarse || isRejected(item) || data.coarse_certainty[item] < data.certainty[item] + LEAST_COARSE) return [];
  const chance = ", " + percent(data.coarse_certainty[item]);
  return [make("small", { class: "quiet" }, "any ", named(data.coarse[item]), chance)];
}

/**
 * Examples of the catalogue: sentences below one another, pictures side by side.
 * @param {number[]} places
 * @param {Child[]} said
 * @returns {HTMLElement[]}
 */
export function examplesAt(places, said) {
  if (!places.length) return [];
  const pieces = places.map((place) => {
    const [, content, name] = data.examples[place];
    return data.pictures ? image(content, name, { grows: true }) : make("li", { dir: "auto" }, content);
  });
  const inside = data.pictures ? make("div", { class: "strip" }, ...pieces) : make("ul", {}, ...pieces);
  return [make("div", { class: "like" }, make("small", { class: "quiet" }, ...said), inside)];
}

/**
 * Places of examples of a class.
 * @param {number} code
 * @param {number} most
 */
export const placesOf = (code, most) => (examplesByClass.get(code) ?? []).slice(0, most);

/**
 * What examples of a class show; of one that a person named, items that have it.
 * @param {string} label
 * @param {number} most
 */
export function exampleOf(label, most) {
  const found = placesOf(data.classes.indexOf(label), most).map((at) => data.examples[at][1]);
  if (found.length) return found;
  const items = [...decisions].filter(([, said]) => said.label === label).map(([item]) => item);
  return items.slice(0, most).map((item) => (data.pictures ? data.pictures[item] : wordsOf(item)));
}

/**
 * Examples of the class of an item, the nearest first, and of its runner-up.
 * @param {number} item
 * @returns {HTMLElement[]}
 */
export function examplesBeside(item) {
  const nearest = data.nearest[item];
  const most = nearest === undefined ? EXAMPLES_BESIDE : EXAMPLES_BESIDE - 1;
  /** @type {(code: number) => number[]} */
  const others = (code) => (examplesByClass.get(code) ?? []).filter((place) => place !== nearest).slice(0, most);
  if (classOf(item) === null) return [];
  const mine = others(data.label[item]);
  const pieces = examplesAt(nearest === undefined ? mine : [nearest, ...mine], ["Examples of ", named(classOf(item))]);
  const second = secondOf(item);
  if (second !== null && !isRejected(item)) {
    pieces.push(...examplesAt(others(data.second[item]), ["Examples of ", named(second)]));
  }
  return pieces;
}

// -- why ------------------------------------------------------------------------------------------------------------

let whyIsOpen = false;

/**
 * Ask a review why an item has its label.
 * @param {number} item
 */
async function explain(item) {
  const number = data.number;
  const answer = await fetch("why/" + item).catch(() => null);
  if (answer === null || !answer.ok) return;
  const { why, near } = await answer.json();
  if (data.number !== number) return;
  const examples = [...data.examples];
  for (const [label, distance, content, name] of near) {
    if (content !== null) examples.push([data.classes.indexOf(label), content, name]);
    why.push([content === null ? -1 : examples.length - 1, label, distance]);
  }
  adopt({ examples, why: { ...data.why, [item]: why } });
  if (current === item || data.ask?.items[0] === item) draw();
}

// Factors above exp(9) are only called large.
const LARGEST_EXPONENT = 9;

/** @param {number} nats */
function factor(nats) {
  const size = Math.abs(nats);
  if (size > LARGEST_EXPONENT) return "more than 1,000";
  const times = Math.exp(size);
  return times < 10 ? times.toFixed(1) : spelled(Math.round(times));
}

/** @param {number} count */
const someItems = (count) => (count < 0.5 ? "none" : spelled(Math.round(count)));

/**
 * Why an item has its label: what it would be alone, what the batch adds, and the nearest examples.
 * @param {number} item
 * @returns {HTMLElement[]}
 */
export function whyOf(item) {
  const said = data.why[item];
  if (said === undefined && data.explains) void explain(item);
  if (!said || !said.length) return [];
  const label = classOf(item);
  if (label === null) return [];
  const [alone, rival, aloneChance, fromItem, fromBatch, mine, theirs, nInBatch, ...near] = said;
  /** @type {(code: number) => HTMLElement} */
  const name = (code) => named(data.classes[code], "b");
  const lines = [];
  if (isRejected(item)) {
    const chance = percent(data.unknown[item]);
    lines.push(
      make("p", {}, "It looks like none of the classes, " + chance + "; ", named(label, "b"), " fits it best."),
    );
  }
  const itAlone = data.classes[alone] === label ? "the same" : name(alone);
  lines.push(make("p", {}, "Alone it would be ", itAlone, ", " + percent(aloneChance) + "."));
  if (rival >= 0) {
    const others = "Of the other " + things(nInBatch - 1) + ", " + someItems(mine);
    const forItem = fromItem >= 0 ? named(label, "b") : name(rival);
    const forBatch = fromBatch >= 0 ? named(label, "b") : name(rival);
    lines.push(
      make(
        "p",
        {},
        others + " are expected to be ",
        named(label, "b"),
        ", " + someItems(theirs) + " to be ",
        name(rival),
        ".",
      ),
      make(
        "p",
        {},
        "By itself, ",
        forItem,
        " fits better by a factor of " +
          factor(fromItem) +
          "; the others add a factor of " +
          factor(fromBatch) +
          " for ",
        forBatch,
        ".",
      ),
    );
  }
  if (near.length) lines.push(...nearestOf(near));
  const told = /** @type {HTMLDetailsElement} */ (
    make("details", { class: "why" }, make("summary", {}, "Why this label?"), ...lines)
  );
  told.open = whyIsOpen;
  told.addEventListener("toggle", () => {
    whyIsOpen = told.open;
  });
  return [told];
}

/**
 * @param {[number, string, number][]} near
 * @returns {HTMLElement[]}
 */
function nearestOf(near) {
  /** @type {(one: [number, string, number]) => Child[]} */
  const parts = ([place, of]) => {
    const words = data.pictures || place < 0 ? "" : " (“" + data.examples[place][1] + "”)";
    return [named(of, "b"), words];
  };
  const lines = [make("p", {}, "Nearest examples: ", ...joined(near, parts), ".")];
  if (data.pictures) {
    const shown = near.filter(([place]) => place >= 0).map(([place]) => data.examples[place]);
    lines.push(
      make("div", { class: "strip" }, ...shown.map(([, content, name]) => image(content, name, { grows: true }))),
    );
  }
  return lines;
}
