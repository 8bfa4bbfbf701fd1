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
 * @param {{ command: string, next_batch: string }} found
 */
function toRun({ command, next_batch: next }) {
  if (next) return make("span", {}, "For the next batch, run: ", make("code", {}, next));
  if (!command) return "";
  return make("span", {}, "To keep what you confirmed for later batches, run: ", make("code", {}, command));
}

/** Labels are written once more, and what was confirmed may join the catalogue. */
export function askFinish() {
  if (!decisions.size || isFinished()) return;
  const box = /** @type {HTMLInputElement} */ (make("input", { type: "checkbox", id: "add" }));
  const adding = " Add the " + counted(data.n_confirmed, "item") + " with a confirmed class to the catalogue";
  const more = data.can_add ? make("label", {}, box, adding) : null;
  const items = counted(nItems() + data.left_out, "item");
  const named = "a catalogue of the " + counted(data.n_confirmed, "item") + " that you named to " + data.catalogue;
  const beside = data.catalogue ? ", your answers beside them, and " + named : ", and your answers beside them";
  const write = data.out
    ? "Write the labels of " + items + " to " + data.out + beside
    : "Give your program the labels of " + items;
  const said = write + "? " + data.progress.said;
  const end = async () => {
    const found = await finish(data.can_add && box.checked);
    if (found === null) return;
    document.documentElement.dataset.finished = "yes";
    draw();
    if (!data.out) {
      note("Your program has the labels. You can close this page.");
      return;
    }
    const again = "To change an answer, or to give a group a name, run the same command again. ";
    const told = ["Written: " + found.written.join(", ") + ".", ...found.notes, "You can close this page.", again];
    note(told.join(" "), toRun(found));
  };
  askSure(said, data.out ? "Write them" : "Finish", end, { more });
}

export const startProgress = () => onDraw(drawProgress);
