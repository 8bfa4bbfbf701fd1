// What is asked, drawn: one item with its likeliest classes, or a sheet; and the end.

import { byId, counted, keyed, make, percent } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { isAsking } from "./filter.js";
import { answerGroup, confirm, correct, leaveOpen, nameNew, sayBad, sayNone, takeChoice, waiting } from "./answers.js";
import { contentOf, examplesAt, placesOf, whyOf } from "./item.js";
import { named } from "./names.js";
import { isNaming, nameField, startNaming } from "./naming.js";
import { image } from "./pictures.js";
import { askFinish } from "./progress.js";
import { askedNow } from "./question.js";
import { isSheet, otherOf, sheetTitle, split, tiles } from "./sheet.js";
import { answerOf, certaintyOf, data, decisions, noneWords, secondCertaintyOf, secondOf, wordsOf } from "./state.js";

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
  const chance = ask.asks_name ? "" : chanceOf(ask.items[0], label);
  const name = make("span", { class: "of" }, named(label), chance === "" ? "" : make("small", {}, chance));
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
  const name = make("span", { class: "of" }, noneWords(), make("small", {}, chance));
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
  const others = [keyed("Leave open", "p", leaveOpen), keyed("Bad item", "b", sayBad)];
  if (!data.from_nothing) others.unshift(keyed("Other class…", "c", correct), keyed("New class…", "n", nameNew));
  else if (!hasField(ask)) others.unshift(keyed(ask.asks_name ? "Name it…" : "Other name…", "c", correct));
  if (ask.label === null && !ask.asks_name) choices.unshift(noneButton(ask.items[0]));
  else others.unshift(keyed(noneWords(), "x", sayNone));
  return [make("div", { class: "choices" }, ...choices), make("div", { class: "does" }, ...others)];
}

/**
 * Whether the page has a field for the name: what is asked has one, an item that was chosen has a dialog.
 * @param {Ask} ask
 */
const hasField = (ask) => ask.asks_name && isAsking();

/** @param {Ask} ask */
const reason = (ask) => make("p", { class: ask.why ? "reason" : "" }, ask.why);

/** @param {Ask} ask */
function drawQuestion(ask) {
  const [item] = ask.items;
  const answers = answersTo(ask);
  const waits = waiting().length;
  if (waits > 1) answers[1].append(keyed("One class for all " + waits + " exceptions…", "g", answerGroup));
  const title = make("h2", { id: "asked-title" }, "What is this?");
  const field = hasField(ask) ? nameField(ask) : "";
  return [
    make("div", { class: "content" }, ...contentOf(item, true)),
    make("div", { class: "answers" }, title, reason(ask), field, ...answers),
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
  if (places.length) return examplesAt(places, ["In the catalogue, ", named(label)]);
  const own = contentsOf(label, data.pictures ? EXAMPLES_ABOVE_SHEET : 2).map((content) =>
    data.pictures ? image(content, "", { grows: true }) : make("li", { dir: "auto" }, content),
  );
  const inside = make(data.pictures ? "div" : "ul", { class: data.pictures ? "strip" : "" }, ...own);
  const said = make("small", { class: "quiet" }, "You named ", named(label));
  return own.length ? [make("div", { class: "like" }, said, inside)] : [];
}

/**
 * How exceptions are marked; a phone has no keys.
 * @param {string} click
 * @param {string} keys
 */
const byClick = (click, keys) => make("span", {}, click, make("span", { class: "by-keys" }, keys), ".");

/**
 * Items that look alike and have no name.
 * @param {Ask} ask
 */
function drawUnnamed(ask) {
  const marks = split(ask).exceptions.length;
  const said = marks
    ? counted(marks, "exception") + " marked; you say next what " + (marks === 1 ? "it is." : "they are.")
    : byClick("Click what does not belong to the others", "; by keys: Esc, and then its letter");
  const names = ask.choices.map((label, place) => choiceButton(ask, label, place));
  return [
    make("div", { class: "above" }, make("div", {}, sheetTitle(ask), reason(ask))),
    nameField(ask),
    make("div", { class: "choices several" }, ...names),
    tiles(ask, draw),
    make("p", { class: "quiet", role: "status", id: "marks" }, said),
    make("div", { class: "does" }, keyed(noneWords(), "x", sayNone), keyed("Leave open", "p", leaveOpen)),
  ];
}

/** @param {Ask} ask */
function drawSheet(ask) {
  const { accepted, exceptions: marks } = split(ask);
  const n = accepted.length;
  const all = marks.length ? "The other " + n : "All " + n;
  const what = ask.oddest ? " labels are right" : ": ";
  const label = ask.oddest ? "" : named(ask.label);
  const text = make("span", {}, n ? all + what : "All are exceptions: go through them", n ? label : "");
  const buttons = [keyed(text, "Enter", confirm, { class: "main", id: "accept-sheet" })];
  const other = otherOf(ask);
  if (ask.choices.length === 2 && other !== null) {
    const place = ask.choices.indexOf(other);
    buttons.push(keyed(make("span", {}, all + ": ", named(other)), String(place + 1), () => takeChoice(place)));
  }
  if (ask.oddest) return sheetWith(ask, marks.length, [...buttons, keyed("Leave open", "p", leaveOpen)]);
  if (ask.label === null) buttons.push(keyed("Name them…", "n", nameNew));
  else buttons.push(keyed(noneWords(), "x", sayNone));
  if (!data.from_nothing) buttons.push(keyed("Other class…", "c", correct));
  else if (ask.label !== null) buttons.push(keyed("Other name…", "c", correct));
  if (ask.label !== null && !data.from_nothing) buttons.push(keyed("New class…", "n", nameNew));
  buttons.push(keyed("Leave open", "p", leaveOpen));
  return sheetWith(ask, marks.length, buttons);
}

/**
 * A sheet with its buttons.
 * @param {Ask} ask
 * @param {number} marks
 * @param {HTMLElement[]} buttons
 */
function sheetWith(ask, marks, buttons) {
  const mistakes = marks
    ? counted(marks, "exception") + " marked; you say next what " + (marks === 1 ? "it is." : "they are.")
    : byClick("Click what does not belong", ", or press its letter; then press Enter");
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

/** @param {Ask | null} ask */
function piecesOf(ask) {
  if (ask === null) return drawEnd();
  if (!isSheet(ask)) return drawQuestion(ask);
  return ask.asks_name ? drawUnnamed(ask) : drawSheet(ask);
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
  const wasNaming = isNaming();
  place.className = ask === null ? "end" : isSheet(ask) ? "sheet" : "one";
  place.replaceChildren(...piecesOf(ask));
  const asked = ask === null ? "" : ask.items.join(" ");
  // After scrolling down to answer, the next question begins at its beginning.
  if (asked !== askedBefore && scrollY > 0) place.scrollIntoView();
  if (ask !== null && hasField(ask) && (wasNaming || asked !== askedBefore)) startNaming();
  askedBefore = asked;
}

export const startAsked = () => onDraw(drawAsked);
