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

// Where a browser keeps the sentences that a person has read, and how many.
const READ = "handful: read";
const MOST_READ = 200;

/** Sentences that a person has read, in this window or before. @type {Set<string>} */
const read = new Set(kept());

/** @returns {string[]} */
function kept() {
  try {
    return JSON.parse(localStorage.getItem(READ) ?? "[]");
  } catch {
    return []; // this browser keeps nothing
  }
}

/** Say what a person should know about the batch, once and for good; whether there was anything. */
export function noteNews() {
  const news = data.notices.filter((said) => !read.has(said));
  for (const said of news) read.add(said);
  if (!news.length) return false;
  note(news.join(" "));
  try {
    localStorage.setItem(READ, JSON.stringify([...read].slice(-MOST_READ)));
  } catch {
    // it is said again next time
  }
  return true;
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
 * A class is none: what it had has no answer any more.
 * @param {string} label
 */
export const removeClass = (label) => change("remove", { label });

/**
 * Take an answer back, whichever it is.
 * @param {string} event
 */
export const takeBack = (event) => change("take-back", { event });

/**
 * Every answer, the last one first; null if the server does not answer.
 * @returns {Promise<any[] | null>}
 */
export async function fetchHistory() {
  const answer = await fetch("history").catch(() => null);
  return answer?.ok ? (await answer.json()).history : null;
}

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
 * Write the labels, and what else is wanted, and end the review.
 * @param {string[]} wanted
 * @returns {Promise<{ written: string[], next_batch: string } | null>}
 */
export const finish = (wanted) => send("finish", Object.fromEntries(wanted.map((what) => [what, true])));

/** A window that comes to the front looks whether another one has answered. */
export async function look() {
  if (document.hidden || isBusy) return;
  const answer = await fetch("number").catch(() => null);
  if (answer === null || !answer.ok || (await answer.json()).number === data.number) return;
  await load();
  draw();
  note("Another window has answered since. This one is up to date now.");
}
