// The server of a review: every request says which state the page shows; the answer is the next state, or why there is
// none.

import { counted, make, note } from "./elements.js";
import { draw } from "./drawing.js";
import { refilter } from "./filter.js";
import { adopt, data } from "./state.js";

/** @typedef {"accept" | "class" | "new" | "none" | "bad" | "skip"} Said */

let isBusy = false;

/** Ask for everything that the page shows. */
export async function load() {
  const answer = await fetch("state");
  if (!answer.ok) return false;
  take(await answer.json());
  return true;
}

/** @param {any} found */
function take(found) {
  adopt(found);
  document.documentElement.dataset.number = String(data.number);
}

/**
 * @param {string} what
 * @param {Record<string, unknown>} body
 * @returns {Promise<any>} what came back; null if it was refused
 */
async function send(what, body) {
  if (isBusy) return null;
  isBusy = true;
  document.documentElement.dataset.busy = "yes";
  try {
    const answer = await fetch(what, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ number: data.number, ...body }),
    });
    const found = await answer.json();
    if (answer.ok) return found;
    if (answer.status === 409) {
      await load();
      draw();
      note("Another window has answered since. This one is up to date now; your last answer was not counted.");
    } else if (answer.status === 401) {
      note("The server was started again: open the address that it printed. Nothing is lost.");
    } else {
      note(found.error);
    }
  } catch {
    note("The server does not answer. Start the same command again: everything up to your last answer is kept.");
  } finally {
    isBusy = false;
    delete document.documentElement.dataset.busy;
  }
  return null;
}

/** Sentences that a person has read. @type {Set<string>} */
const read = new Set();

/** Say what the server wants a person to know, once; whether there was anything. */
export function noteNews() {
  const news = (data.notes ?? []).filter((said) => !read.has(said));
  for (const said of news) read.add(said);
  if (news.length) note(news.join(" "));
  return news.length > 0;
}

/** Say what an answer did to other labels. */
function noteChanges() {
  if (noteNews()) return;
  const n = data.changed.length;
  if (!n) {
    note(data.undid ? "Undone." : "");
    return;
  }
  const shows = () => refilter({ show: "changed", label: null, proposal: null });
  const button = make("button", { type: "button", class: "link", onclick: shows }, "Show");
  const labels = counted(n, "other label");
  note(data.undid ? "Undone: " + labels + " changed back." : "Your answer changed " + labels + ".", button);
}

/**
 * One step of the reviewer, undone as one: the same answer about one item or several.
 * @param {number[]} items
 * @param {Said} said
 * @param {string | null} label
 * @param {number[]} [wrong] other items of the sheet, whose label is wrong
 * @returns {Promise<boolean>} whether it was taken
 */
export async function decide(items, said, label, wrong = []) {
  return change("decide", { items, said, label, wrong });
}

/**
 * Two names are one class: the first is called as the second.
 * @param {string} label
 * @param {string} into
 */
export const mergeClasses = (label, into) => change("merge", { label, into });

/**
 * One class is two: the items of its smaller part lose their name.
 * @param {string} label
 */
export const splitClass = (label) => change("split", { label });

/**
 * @param {string} what
 * @param {Record<string, unknown>} body
 */
async function change(what, body) {
  const found = await send(what, body);
  if (found === null) return false;
  take(found);
  noteChanges();
  return true;
}

/**
 * Names said before that look like one that is about to be said.
 * @param {string} name
 * @returns {Promise<string[]>}
 */
export const similarTo = async (name) => (await send("similar", { name }))?.similar ?? [];

/** Take the last step back. */
export async function undo() {
  if (!data.n_steps) return false;
  const found = await send("undo", {});
  if (found === null) return false;
  take(found);
  noteChanges();
  draw();
  return true;
}

/**
 * Write the labels, and end the review.
 * @returns {Promise<{ written: string[], next_batch: string } | null>}
 */
export const finish = () => send("finish", {});

/** A window that comes to the front looks whether another one has answered. */
export async function look() {
  if (document.hidden || isBusy) return;
  const answer = await fetch("number").catch(() => null);
  if (answer === null || !answer.ok || (await answer.json()).number === data.number) return;
  await load();
  draw();
  note("Another window has answered since. This one is up to date now.");
}
