// The server of a review: every request says which state the page shows; the answer is the next state, or why there is
// none.

import { counted, dialogOf, make, note } from "./elements.js";
import { draw } from "./drawing.js";
import { isAsking, refilter } from "./filter.js";
import { askedNow } from "./question.js";
import { adopt, data } from "./state.js";

/** @typedef {"accept" | "class" | "new" | "none" | "bad" | "skip"} Said */

let isBusy = false;

/** Whether the server has ended, and this window waits until it is there again. */
let isLost = false;

// Milliseconds between two looks for what is new, and for a server that has ended.
const LOOK = 3000;
const WAIT = 2000;
// The number of a state counts revisions, and this for every time that items came.
const GENERATION = 1e9;

/** @param {number} time */
const pause = (time) => new Promise((goOn) => setTimeout(goOn, time));

/**
 * Ask for everything that the page shows.
 * @returns {Promise<import("./opening.js").Opening | null>} how far the opening is, null if all is here
 */
export async function load() {
  const answer = await fetch("state");
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  if (found.opening) return found.opening;
  take(found);
  return null;
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
  if (isBusy || isLost) return null;
  isBusy = true;
  document.documentElement.dataset.busy = "yes";
  try {
    let answer = await post(what, body);
    if (answer.status === 409) {
      const before = { number: data.number, names: data.names, n_steps: data.n_steps };
      await load();
      // Items came, and nobody answered: what was said is about the same ones at other places.
      const again = before.n_steps === data.n_steps && isGrown(before.number) ? moved(body, before.names) : null;
      if (again === null) {
        draw();
        note("Another window has answered since. This one is up to date now; your last answer was not counted.");
        return null;
      }
      answer = await post(what, again);
    }
    const found = await answer.json();
    if (answer.ok) return found;
    note(answer.status === 401 ? "Open the address that the command printed. Nothing is lost." : found.error);
  } catch {
    void waitForServer();
  } finally {
    isBusy = false;
    delete document.documentElement.dataset.busy;
  }
  return null;
}

/**
 * @param {string} what
 * @param {Record<string, unknown>} body
 */
const post = (what, body) =>
  fetch(what, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ number: data.number, ...body }),
  });

/** Whether items came since the state with this number. @param {number} number */
const isGrown = (number) => Math.floor(number / GENERATION) !== Math.floor(data.number / GENERATION);

/**
 * What is said about items, at their places now; null if one of them is gone.
 * @param {Record<string, unknown>} body
 * @param {string[]} names
 */
function moved(body, names) {
  const places = new Map(data.names.map((name, item) => [name, item]));
  /** @type {Record<string, unknown>} */
  const found = { ...body };
  for (const list of ["items", "wrong"]) {
    if (!Array.isArray(body[list])) continue;
    const items = body[list].map((item) => places.get(names[item]));
    if (items.includes(undefined)) return null;
    found[list] = items;
  }
  return found;
}

/** Wait for a server that has ended, and go on when it is there again. */
async function waitForServer() {
  if (isLost || document.documentElement.dataset.finished) return;
  isLost = true;
  note("The server does not answer. Start the same command again: this window goes on, without your last answer.");
  while (!(await isBack())) await pause(WAIT);
  while ((await load().catch(() => ({}))) !== null) await pause(WAIT);
  isLost = false;
  draw();
  note("The server is there again.");
}

/**
 * Whether the server of this review is there: it knows what both know. Who took its port meanwhile gets no cookie.
 */
async function isBack() {
  const nonce = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const answer = await fetch("/back?nonce=" + nonce, { credentials: "omit" }).catch(() => null);
  if (!answer?.ok || crypto.subtle === undefined) return false;
  const bytes = (/** @type {string} */ text) => new TextEncoder().encode(text);
  const how = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes(data.proof), how, false, ["sign"]);
  const wanted = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(location.host + " " + nonce)));
  const { proof } = await answer.json();
  return proof === [...wanted].map((byte) => byte.toString(16).padStart(2, "0")).join("");
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
  const shows = () => dialogOf("told").showModal();
  note(news.join(" "), make("button", { type: "button", class: "link", onclick: shows }, "More"));
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

/** How often the server did not answer, one time after the other. */
let nMissed = 0;

/** Look whether another window has answered, or items came. */
async function look() {
  if (document.hidden || isBusy || isLost || document.documentElement.dataset.finished) return;
  const answer = await fetch("number").catch(() => null);
  // A connection may break once; a server that ended does not answer the next time either.
  nMissed = answer === null ? nMissed + 1 : 0;
  if (nMissed > 1) void waitForServer();
  if (!answer?.ok) return;
  const { number } = await answer.json();
  if (number === data.number || isBusy) return;
  // What came is asked about after the next answer: what a person looks at stays.
  const isSameGeneration = Math.floor(number / GENERATION) === Math.floor(data.number / GENERATION);
  if (!isSameGeneration && isAsking() && askedNow() !== null) return;
  await load();
  draw();
  if (isSameGeneration) note("Another window has answered since. This one is up to date now.");
  else noteNews();
}

/** Look now and then, and when the window comes to the front. */
export function startLooking() {
  setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look);
  window.addEventListener("focus", look);
}
