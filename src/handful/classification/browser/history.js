// Every answer, the last one first, with its pictures; a click goes there, and it can be changed or taken back.

import { byId, keyed, make } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { ANSWER, isInHistory, opened, refilter } from "./filter.js";
import { named } from "./names.js";
import { image } from "./pictures.js";
import { fetchHistory, takeBack } from "./server.js";
import { data, noneWords, things, wordsOf } from "./state.js";

/**
 * @typedef {object} Said
 * @property {string} event
 * @property {string} time
 * @property {string} person
 * @property {string} kind
 * @property {string | null} label
 * @property {string | null} into
 * @property {number[]} items
 */

// Pictures of an answer, and its sentences; answers that are drawn until more are asked for.
const MOST_PICTURES = 8;
const MOST_SENTENCES = 2;
const PORTION = 50;

/** @type {Said[]} */
let said = [];
let saidAt = -1;
let nDrawn = PORTION;

/**
 * What an answer said, in words.
 * @param {Said} one
 * @returns {(Node | string)[]}
 */
function wordsOfAnswer({ kind, label, into, items }) {
  const some = things(items.length);
  if (kind === "named")
    return label === null ? [some + ", of a class that was removed"] : [some + ": ", named(label, "b")];
  if (kind === "accepted") return items.length ? ["The labels of " + some + " are right"] : ["No label was right"];
  if (kind === "none") return [some + ": " + noneWords()];
  if (kind === "bad") return [some + ": bad"];
  if (kind === "renamed") return [named(label, "b"), " is called ", named(into, "b")];
  if (kind === "removed") return [named(label, "b"), " was removed"];
  return [some + ", left open"];
}

/** @param {Said} one */
function showAnswer(one) {
  opened.items = one.items;
  opened.event = one.event;
  opened.words = wordsOfAnswer(one);
  refilter({ show: ANSWER, label: null, proposal: null });
}

/** @param {Said} one */
function answerRow(one) {
  const faces = data.pictures
    ? one.items.slice(0, MOST_PICTURES).map((item) => image(data.pictures?.[item] ?? null, "", { style: "face" }))
    : one.items.slice(0, MOST_SENTENCES).map((item) => make("q", { dir: "auto" }, wordsOf(item)));
  const when = new Date(one.time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const who = make("small", { class: "quiet" }, [one.person, when].filter(Boolean).join(", "));
  const text = make("span", { class: "grow" }, ...wordsOfAnswer(one), make("br", {}), who);
  const opens = make("button", { type: "button", class: "answer", onclick: () => showAnswer(one) }, text, ...faces);
  const back = make("button", { type: "button", class: "back" }, "Take back");
  back.addEventListener("click", () => takeBack(one.event).then((isTaken) => isTaken && draw()));
  return make("li", {}, one.items.length ? opens : make("div", { class: "answer" }, text), back);
}

async function fetchAndDraw() {
  const number = data.number;
  const found = await fetchHistory();
  if (found === null) return;
  said = found;
  saidAt = number;
  draw();
}

function drawHistory() {
  const place = byId("history");
  place.hidden = !isInHistory();
  if (place.hidden) {
    nDrawn = PORTION;
    return;
  }
  if (saidAt !== data.number) void fetchAndDraw();
  const more = keyed("Show more", "", () => {
    nDrawn += PORTION;
    draw();
  });
  place.replaceChildren(
    make("h2", {}, said.length ? "What you said" : "Nothing has been said yet"),
    make("ul", {}, ...said.slice(0, nDrawn).map(answerRow)),
    said.length > nDrawn ? more : "",
  );
}

export const startHistory = () => onDraw(drawHistory);
