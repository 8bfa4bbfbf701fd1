// How far a review is, in one line; the rest when it is asked for.

import { byId, counted, dialogOf, make } from "./elements.js";
import { onDraw } from "./drawing.js";
import { isFinished } from "./end.js";
import { data, decisions } from "./state.js";

/** What is left to do, in a few words. */
function leftToDo() {
  if (isFinished()) return "Finished";
  const { done, may_stop: mayStop, answers_left: left } = data.progress;
  if (done) return "All seen";
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

export function startProgress() {
  onDraw(drawProgress);
  byId("progress-left").addEventListener("click", () => dialogOf("told").showModal());
}
