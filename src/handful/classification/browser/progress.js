// How far a review is, what ends it, and its end.

import { byId, counted, make, note } from "./elements.js";
import { draw, onDraw } from "./drawing.js";
import { askSure } from "./dialogs.js";
import { finish } from "./server.js";
import { data, decisions, nItems } from "./state.js";

const isFinished = () => document.documentElement.dataset.finished !== undefined;

/** What is left to do, in a few words. */
function leftToDo() {
  if (isFinished()) return "Finished";
  const { done, may_stop: mayStop, answers_left: left } = data.progress;
  if (done) return "Everything has been seen";
  if (mayStop) return "You may stop";
  return "About " + counted(left, "more answer");
}

/**
 * What is known, and what ends the review.
 * @param {string} said
 */
function withEnd(said) {
  const { done, may_stop: mayStop } = data.progress;
  if (isFinished()) return ". " + said;
  if (done) return ". " + said + " Finish writes the labels.";
  if (mayStop) return ". " + said + " Finish now, or go on until every item has been seen.";
  return " until you may stop. " + said + " The review ends when every item has been seen.";
}

function drawProgress() {
  const { said, right, seen, n_items: nAll, may_stop: mayStop, done } = data.progress;
  byId("progress").hidden = false;
  byId("progress").classList.toggle("stop", mayStop || done || isFinished());
  byId("progress-left").textContent = leftToDo();
  byId("progress-said").textContent = withEnd(said);
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

/** Labels are written once more; the answers are in the catalogue already. */
export function askFinish() {
  if (!decisions.size || isFinished()) return;
  const items = counted(nItems() + data.left_out, "item");
  const write = data.out
    ? "Write the labels of " + items + " to " + data.out
    : "Give your program the labels of " + items;
  const said = write + "? " + data.progress.said;
  const end = async () => {
    const found = await finish();
    if (found === null) return;
    document.documentElement.dataset.finished = "yes";
    draw();
    if (!data.out) {
      note("Your program has the labels. You can close this page.");
      return;
    }
    const kept = "Your answers are in " + data.catalogue + ". ";
    const again = "To change an answer, or to give a group a name, run the same command again. ";
    const told = ["Written: " + found.written.join(", ") + ".", kept, "You can close this page.", again];
    note(told.join(" "), toRun(found));
  };
  askSure(said, data.out ? "Write them" : "Finish", end);
}

export const startProgress = () => onDraw(drawProgress);
