// How far a review is, in one line; the rest when it is asked for; and its end.

import { byId, counted, dialogOf, make, note } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { askSure } from "./dialogs.js";
import { finish } from "./server.js";
import { data, decisions, nItems, things } from "./state.js";

const isFinished = () => document.documentElement.dataset.finished !== undefined;

/** What is left to do, in a few words. */
function leftToDo() {
  if (isFinished()) return "Finished";
  const { done, may_stop: mayStop, answers_left: left } = data.progress;
  if (done) return "Everything has been seen";
  if (mayStop) return "You may stop";
  return "About " + counted(left, "answer") + " left";
}

/** What ends the review. */
function endWords() {
  const { done, may_stop: mayStop } = data.progress;
  if (isFinished()) return "";
  if (done) return " Finish writes the labels.";
  if (mayStop) return " Finish now, or go on until everything has been seen.";
  return " After that you may stop, or go on until everything has been seen.";
}

function drawProgress() {
  const { said, right, seen, n_items: nAll, may_stop: mayStop, done } = data.progress;
  const left = byId("progress-left");
  left.textContent = leftToDo();
  left.classList.toggle("done", mayStop || done || isFinished());
  byId("told-title").textContent = leftToDo();
  byId("progress-said").textContent = said + endWords();
  byId("notices").replaceChildren(...data.notices.map((notice) => make("p", { class: "alarm" }, notice)));
  const [wasSeen, isRight] = /** @type {HTMLElement[]} */ ([...byId("progress-bar").children]);
  wasSeen.style.width = (100 * seen) / nAll + "%";
  isRight.style.width = 100 * Math.max(0, right[0] - seen / nAll) + "%";
  /** @type {HTMLButtonElement} */ (byId("undo")).disabled = !data.n_steps;
  /** @type {HTMLButtonElement} */ (byId("finish")).disabled = !decisions.size;
}

/**
 * The command that comes next.
 * @param {{ next_batch: string }} found
 */
function toRun({ next_batch: next }) {
  return next ? make("span", {}, "For the next batch, run: ", make("code", {}, next)) : "";
}

/** What else can be written, and what that is. @type {Record<string, string>} */
const OFFERS = {
  folder: "A folder per class, with copies of the photographs",
  keywords: "Keywords that photo programs read, next to the photographs (.xmp)",
};

/** @param {string} what */
function offerOf(what) {
  const box = make("input", { type: "checkbox", name: what });
  return make("label", { class: "offer" }, box, OFFERS[what]);
}

/** Labels are written once more; the answers are in the catalogue already. */
export function askFinish() {
  if (!decisions.size || isFinished()) return;
  const all = things(nItems() + data.left_out);
  const write = data.out ? "Write the labels of " + all + " to " + data.out : "Give your program the labels of " + all;
  const end = async () => {
    const boxes = [...document.querySelectorAll("#sure-more input:checked")];
    const found = await finish(boxes.map((box) => /** @type {HTMLInputElement} */ (box).name));
    if (found === null) return;
    document.documentElement.dataset.finished = "yes";
    draw();
    if (!data.out) {
      note("Your program has the labels. You can close this page.");
      return;
    }
    const kept = "Your answers are in " + data.catalogue + ". ";
    const again = "To change an answer, or to name what has no name yet, run the same command again. ";
    const told = ["Written: " + found.written.join(", ") + ".", kept, "You can close this page.", again];
    note(told.join(" "), toRun(found));
  };
  const more = make("div", {}, ...data.offers.map(offerOf));
  askSure(write + "? " + data.progress.said, data.out ? "Write them" : "Finish", end, { more });
}

export function startProgress() {
  onDraw(drawProgress);
  byId("progress-left").addEventListener("click", () => dialogOf("told").showModal());
}
