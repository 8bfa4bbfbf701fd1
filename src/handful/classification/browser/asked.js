// What is asked, drawn: one item with its likeliest classes, or a sheet; and the end. Pictures have the page; what can
// be answered lies below them, where a thumb is.

import { byId, counted, keyed, make, percent } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { drawEnd, isFinished } from "./end.js";
import { isAsking } from "./filter.js";
import { listenToPinch } from "./grid.js";
import {
  answerGroup,
  confirm,
  correct,
  hasLikely,
  leaveOpen,
  nameNew,
  sayBad,
  sayNone,
  takeChoice,
  waiting,
} from "./answers.js";
import { contentOf, exampleOf, whyOf } from "./item.js";
import { named } from "./names.js";
import { isNaming, nameField, startNaming } from "./naming.js";
import { image } from "./pictures.js";
import { askedNow, chanceOf, chanceOfNone } from "./question.js";
import { fitTiles, isSheet, otherOf, sheetTitle, split, tiles } from "./sheet.js";
import { data, noneWords, saidOf } from "./state.js";

/** @typedef {import("./state.js").Ask} Ask */
/** @typedef {import("./elements.js").Child} Child */

// Examples in the button of a class.
const EXAMPLES_IN_CHOICE = 3;
// The chance of none of the classes is shown from here on.
const LEAST_NONE = 0.01;

/** @param {string} label */
function examplesOf(label) {
  const contents = exampleOf(label, data.pictures ? EXAMPLES_IN_CHOICE : 1);
  const pieces = contents.map((content) => (data.pictures ? image(content, "") : make("q", { dir: "auto" }, content)));
  return make("span", { class: "beside" }, ...pieces);
}

/**
 * The button of a class, with its key and examples.
 * @param {Ask} ask
 * @param {string} label
 * @param {number} place
 */
function choiceButton(ask, label, place) {
  const isFirst = label === ask.label && hasLikely(ask);
  const isSaid = isSheet(ask) || saidOf(ask.items[0]) !== undefined;
  const chance = ask.asks_name || isSaid ? null : chanceOf(ask.items[0], label);
  const name = make("span", { class: "of" }, named(label), chance === null ? "" : make("small", {}, percent(chance)));
  const keys = make(
    "span",
    { class: "keys" },
    isFirst ? make("kbd", {}, "Enter") : "",
    make("kbd", {}, String(place + 1)),
  );
  const about = { type: "button", class: isFirst ? "choose main" : "choose", onclick: () => takeChoice(place) };
  return make("button", about, name, examplesOf(label), keys);
}

/**
 * The button of none of the classes, with its chance; filled if that is what the model says.
 * @param {Ask} ask
 */
function noneButton(ask) {
  const isOpen = !isSheet(ask) && !ask.asks_name && saidOf(ask.items[0]) === undefined;
  const chance = isOpen ? chanceOfNone(ask.items[0]) : 0;
  const text = [noneWords(), chance >= LEAST_NONE ? make("small", {}, percent(chance)) : ""];
  if (ask.label !== null || ask.asks_name) return keyed(make("span", { class: "of" }, ...text), "x", sayNone);
  const isLikely = hasLikely(ask);
  const keys = make("span", { class: "keys" }, make("kbd", {}, isLikely ? "Enter" : "x"));
  const about = { type: "button", class: isLikely ? "choose main" : "choose", onclick: sayNone };
  return make("button", about, make("span", { class: "of" }, ...text), make("span", {}), keys);
}

/**
 * The answers to a question about an item.
 * @param {Ask} ask
 * @returns {HTMLElement[]}
 */
export function answersTo(ask) {
  const choices = ask.choices.map((label, place) => choiceButton(ask, label, place));
  const others = [keyed("Leave open", "p", leaveOpen), keyed("Bad " + data.words[0], "b", sayBad)];
  if (!data.from_nothing) others.unshift(keyed("Other class…", "c", correct), keyed("New class…", "n", nameNew));
  else if (!hasField(ask)) others.unshift(keyed(ask.asks_name ? "Name it…" : "Other name…", "c", correct));
  if (ask.label === null && !ask.asks_name) choices.unshift(noneButton(ask));
  else others.unshift(noneButton(ask));
  return [make("div", { class: "choices" }, ...choices), make("div", { class: "does" }, ...others)];
}

/**
 * Whether the page has a field for the name: what is asked has one, an item that was chosen has a dialog.
 * @param {Ask} ask
 */
const hasField = (ask) => ask.asks_name && isAsking();

/** @param {Ask} ask */
function reasonWords(ask) {
  const { corrects } = ask;
  if (ask.marked) {
    const n = ask.waiting.length;
    return "You marked it." + (n ? " " + counted(n, "more follows", "more follow") + "." : "");
  }
  if (ask.oddest) return "Least like anything you have seen.";
  if (isSheet(ask)) return "";
  if (ask.asks_name) return corrects > 1 ? "About " + corrects + " others like it have no name yet." : "";
  return corrects > 1 ? "Your answer is expected to correct " + corrects + " labels." : "This label is doubtful.";
}

/**
 * The line above the pictures.
 * @param {Ask} ask
 * @param {Child[]} title
 * @param {string} hint
 */
function head(ask, title, hint) {
  return make(
    "div",
    { class: "title" },
    make("h2", { id: "asked-title" }, ...title),
    make("p", { class: "quiet", role: "status", id: "marks" }, hint),
    make("p", { class: "quiet reason" }, reasonWords(ask)),
  );
}

/** @param {Ask} ask */
function drawQuestion(ask) {
  const [item] = ask.items;
  const answers = answersTo(ask);
  const waits = waiting().length;
  if (waits > 1) answers[1].append(keyed("One class for all " + waits + " marked…", "g", answerGroup));
  const field = hasField(ask) ? nameField(ask) : "";
  return [
    head(ask, ["What is this?"], ""),
    make("div", { class: "content" }, ...contentOf(item, true)),
    make("div", { class: "dock" }, field, ...answers, ...whyOf(item)),
  ];
}

/** What can be done with tiles, and what was. @param {number} n */
function marksWords(n) {
  if (n) return n + " marked; you say next what " + (n === 1 ? "it is." : "they are.");
  return matchMedia("(pointer: coarse)").matches ? "Tap what does not belong." : "Click what does not belong.";
}

/**
 * Items that look alike and have no name.
 * @param {Ask} ask
 */
function unnamedDock(ask) {
  const names = ask.choices.map((label, place) => choiceButton(ask, label, place));
  return [
    nameField(ask),
    make("div", { class: "does" }, noneButton(ask), keyed("Leave open", "p", leaveOpen)),
    make("div", { class: "choices several" }, ...names),
  ];
}

/** @param {Ask} ask */
function labelledDock(ask) {
  const { accepted, exceptions } = split(ask);
  const n = accepted.length;
  const all = exceptions.length ? "The other " + n : "All " + n;
  const isOne = !ask.oddest && ask.label !== null;
  /** @type {Child[]} */
  const said = ask.oddest ? [all + " labels are right"] : [all + ": ", named(ask.label)];
  const text = make("span", {}, ...(n ? said : ["Go through all that you marked"]));
  const examples = isOne ? examplesOf(/** @type {string} */ (ask.label)) : "";
  const about = { type: "button", class: "main choose", id: "accept-sheet", onclick: confirm };
  const buttons = [make("button", about, text, examples, make("kbd", {}, "Enter"))];
  const other = otherOf(ask);
  if (ask.choices.length === 2 && other !== null && !ask.oddest) {
    const place = ask.choices.indexOf(other);
    buttons.push(keyed(make("span", {}, all + ": ", named(other)), String(place + 1), () => takeChoice(place)));
  }
  if (!ask.oddest) {
    if (isOne) buttons.push(keyed(noneWords(), "x", sayNone));
    if (isOne || !data.from_nothing) buttons.push(keyed("Other class…", "c", correct));
    if (!isOne || !data.from_nothing) buttons.push(keyed(isOne ? "New class…" : "Name them…", "n", nameNew));
  }
  return [make("div", { class: "does" }, ...buttons, keyed("Leave open", "p", leaveOpen))];
}

/** @param {Ask} ask */
function drawSheet(ask) {
  const marks = split(ask).exceptions.length;
  const dock = ask.asks_name ? unnamedDock(ask) : labelledDock(ask);
  return [head(ask, sheetTitle(ask), marksWords(marks)), tiles(ask, draw), make("div", { class: "dock" }, ...dock)];
}

/** @param {Ask | null} ask */
function piecesOf(ask) {
  if (ask === null) return drawEnd();
  return isSheet(ask) ? drawSheet(ask) : drawQuestion(ask);
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
  const ask = isFinished() ? null : askedNow();
  const wasNaming = isNaming();
  const scrolled = document.querySelector(".tiles")?.scrollTop ?? 0;
  place.className = ask === null ? "end" : isSheet(ask) ? "sheet" : "one";
  place.replaceChildren(...piecesOf(ask));
  fitTiles();
  const asked = ask === null ? "" : ask.items.join(" ");
  // A mark leaves the tiles where they are, and what comes next begins at its beginning.
  if (asked === askedBefore) document.querySelector(".tiles")?.scrollTo(0, scrolled);
  if (ask !== null && hasField(ask) && (wasNaming || asked !== askedBefore)) startNaming();
  askedBefore = asked;
}

export function startAsked() {
  onDraw(drawAsked);
  addEventListener("resize", fitTiles);
  new ResizeObserver(fitTiles).observe(byId("asked")); // a notice comes and goes
  listenToPinch(byId("asked"));
}
