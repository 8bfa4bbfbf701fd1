// What is asked, drawn: one item with its likeliest classes, or a sheet; and the end.

import { byId, counted, keyed, make, percent } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { isAsking } from "./filter.js";
import { answerGroup, confirm, correct, leaveOpen, nameNew, sayBad, sayNone, takeChoice } from "./answers.js";
import { contentOf, examplesAt, placesOf, whyOf } from "./item.js";
import { named } from "./names.js";
import { image } from "./pictures.js";
import { askFinish } from "./progress.js";
import { askedNow, exceptions } from "./question.js";
import { isSheet, otherOf, sheetTitle, split, tiles } from "./sheet.js";
import { NONE, answerOf, certaintyOf, data, decisions, secondCertaintyOf, secondOf, wordsOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */

// Examples in the button of a class, and above a sheet.
const EXAMPLES_IN_CHOICE = 3;
const EXAMPLES_ABOVE_SHEET = 6;

/**
 * The chance that an item is of a class, if the page knows it.
 * @param {number} item
 * @param {string} label
 */
function chanceOf(item, label) {
  if (label === answerOf(item)) return percent(certaintyOf(item));
  if (label === secondOf(item)) return percent(secondCertaintyOf(item));
  return "";
}

/**
 * Examples of a class in the catalogue; of a class that a person named, items that have it.
 * @param {string} label
 * @param {number} most
 */
function contentsOf(label, most) {
  const found = placesOf(data.classes.indexOf(label), most).map((at) => data.examples[at][1]);
  if (found.length) return found;
  const items = [...decisions].filter(([, said]) => said.label === label).map(([item]) => item);
  return items.slice(0, most).map((item) => (data.pictures ? data.pictures[item] : wordsOf(item)));
}

/**
 * The button of a class, with its key and examples.
 * @param {Ask} ask
 * @param {string} label
 * @param {number} place
 */
function choiceButton(ask, label, place) {
  const isFirst = label === ask.label;
  const contents = contentsOf(label, data.pictures ? EXAMPLES_IN_CHOICE : 1);
  const examples = contents.map((content) =>
    data.pictures ? image(content, "") : make("q", { dir: "auto" }, content),
  );
  const name = make("span", { class: "of" }, named(label), make("small", {}, chanceOf(ask.items[0], label)));
  const keys = make(
    "span",
    { class: "keys" },
    isFirst ? make("kbd", {}, "Enter") : "",
    make("kbd", {}, String(place + 1)),
  );
  const about = { type: "button", class: isFirst ? "choose main" : "choose", onclick: () => takeChoice(place) };
  return make("button", about, name, make("span", { class: "beside" }, ...examples), keys);
}

/**
 * The button of none of the classes, if that is what the model says.
 * @param {number} item
 */
function noneButton(item) {
  const chance = answerOf(item) === null ? percent(certaintyOf(item)) : "";
  const name = make("span", { class: "of" }, NONE, make("small", {}, chance));
  const keys = make("span", { class: "keys" }, make("kbd", {}, "Enter"));
  return make("button", { type: "button", class: "choose main", onclick: confirm }, name, make("span", {}), keys);
}

/**
 * The answers to a question about an item.
 * @param {Ask} ask
 * @returns {HTMLElement[]}
 */
export function answersTo(ask) {
  const choices = ask.choices.map((label, place) => choiceButton(ask, label, place));
  const others = [
    keyed("Other class…", "c", correct),
    keyed("New class…", "n", nameNew),
    keyed("Leave open", "p", leaveOpen),
    keyed("Bad item", "b", sayBad),
  ];
  if (ask.label === null) choices.unshift(noneButton(ask.items[0]));
  else others.unshift(keyed("None of these", "x", sayNone));
  return [make("div", { class: "choices" }, ...choices), make("div", { class: "does" }, ...others)];
}

/** @param {Ask} ask */
const reason = (ask) => make("p", { class: ask.why ? "reason" : "" }, ask.why);

/** @param {Ask} ask */
function drawQuestion(ask) {
  const [item] = ask.items;
  const answers = answersTo(ask);
  const waits = exceptions().items.length;
  if (waits > 1) answers[1].append(keyed("One class for all " + waits + " exceptions…", "g", answerGroup));
  return [
    make("div", { class: "content" }, ...contentOf(item, true)),
    make("div", { class: "answers" }, make("h2", {}, "What is this?"), reason(ask), ...answers),
    make("div", { class: "more" }, ...whyOf(item)),
  ];
}

/**
 * Examples of the class of a sheet.
 * @param {Ask} ask
 */
function examplesOf({ label }) {
  if (label === null) return [];
  const places = placesOf(data.classes.indexOf(label), data.pictures ? EXAMPLES_ABOVE_SHEET : 2);
  return examplesAt(places, ["In the catalogue, ", named(label)]);
}

/** @param {Ask} ask */
function drawSheet(ask) {
  const { accepted, exceptions: marks } = split(ask);
  const n = accepted.length;
  const all = marks.length ? "The other " + n : "All " + n;
  const text = make("span", {}, n ? all + ": " : "All are exceptions: go through them", n ? named(ask.label) : "");
  const buttons = [keyed(text, "Enter", confirm, { class: "main", id: "accept-sheet" })];
  const other = otherOf(ask);
  if (ask.choices.length === 2 && other !== null) {
    const place = ask.choices.indexOf(other);
    buttons.push(keyed(make("span", {}, all + ": ", named(other)), String(place + 1), () => takeChoice(place)));
  }
  if (ask.label === null) buttons.push(keyed("Name them…", "n", nameNew));
  else buttons.push(keyed("None of these", "x", sayNone));
  buttons.push(keyed("Other class…", "c", correct));
  if (ask.label !== null) buttons.push(keyed("New class…", "n", nameNew));
  buttons.push(keyed("Leave open", "p", leaveOpen));
  const mistakes = marks.length
    ? counted(marks.length, "exception") + " marked; you say next what " + (marks.length === 1 ? "it is." : "they are.")
    : "Click what does not belong, or press its letter; then press Enter.";
  return [
    make("div", { class: "above" }, make("div", {}, sheetTitle(ask), reason(ask)), ...examplesOf(ask)),
    tiles(ask, draw),
    make("p", { class: "quiet", role: "status", id: "marks" }, mistakes),
    make("div", { class: "does" }, ...buttons),
  ];
}

function drawEnd() {
  const { done, n_items: nAll, decisions: nSaid } = data.progress;
  const said = done
    ? "All " + counted(nAll, "item") + " have been seen, with " + counted(nSaid, "decision") + "."
    : "Nothing is left that is worth asking.";
  return [
    make("h2", {}, said),
    make(
      "p",
      {},
      "Finish writes the labels. Until then you can look at any item on the left, and change what you said.",
    ),
    make("div", { class: "does" }, keyed("Finish", "s", askFinish, { class: "main" })),
  ];
}

/** What was drawn last. */
let askedBefore = "";

function drawAsked() {
  const place = byId("asked");
  place.hidden = !isAsking();
  if (place.hidden) {
    place.replaceChildren();
    return;
  }
  const ask = askedNow();
  const pieces = ask === null ? drawEnd() : isSheet(ask) ? drawSheet(ask) : drawQuestion(ask);
  place.className = ask === null ? "end" : isSheet(ask) ? "sheet" : "one";
  place.replaceChildren(...pieces);
  const asked = ask === null ? "" : ask.items.join(" ");
  // After scrolling down to answer, the next question begins at its beginning.
  if (asked !== askedBefore && scrollY > 0) place.scrollIntoView();
  askedBefore = asked;
}

export const startAsked = () => onDraw(drawAsked);
