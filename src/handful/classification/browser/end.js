// The end of a review: the kinds that were found, what is written, and what comes next.

import { counted, keyed, make, spelled } from "./elements.js";
import { askSure } from "./dialogs.js";
import { ASKED, refilter } from "./filter.js";
import { exampleOf } from "./item.js";
import { named } from "./names.js";
import { image } from "./pictures.js";
import { finish } from "./server.js";
import { UNNAMED, countedLabels, data, decisions, labelOf, nItems, things } from "./state.js";

/** @typedef {{ written: string[], next_batch: string }} Finished */

/** What finishing wrote. @type {Finished | null} */
let written = null;

export const isFinished = () => document.documentElement.dataset.finished !== undefined;

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
    written = await finish(boxes.map((box) => /** @type {HTMLInputElement} */ (box).name));
    if (written === null) return;
    document.documentElement.dataset.finished = "yes";
    refilter({ show: ASKED, label: null, proposal: null });
  };
  const more = make("div", {}, ...data.offers.map(offerOf));
  askSure(write + "? " + data.progress.said, data.out ? "Write them" : "Finish", end, { more });
}

/** What was written, and what comes next. @param {Finished} found */
function writtenPieces({ written: files, next_batch: next }) {
  if (!data.out)
    return [make("h2", {}, "Finished"), make("p", {}, "Your program has the labels. You can close this page.")];
  const again = " To change an answer, or to name what has no name yet, run the same command again.";
  return [
    make("h2", {}, "Finished"),
    make("p", {}, "Written: " + files.join(", ") + "."),
    make("p", {}, "Your answers are in " + data.catalogue + "." + again + " You can close this page."),
    next ? make("p", {}, "For the next batch, run: ", make("code", {}, next)) : "",
  ];
}

/** What can be done when nothing is asked any more. */
function endPieces() {
  const { done, n_items: nAll, decisions: nSaid } = data.progress;
  const said = done
    ? "You have seen all " + things(nAll) + ", with " + counted(nSaid, "answer") + "."
    : "Nothing is left that is worth asking.";
  return [
    make("h2", {}, said),
    make("p", {}, "Finish writes the labels. You can still look at everything, and change what you said."),
    make("div", { class: "does" }, keyed("Finish", "s", askFinish, { class: "main" })),
  ];
}

/**
 * A kind that was found, with a picture, and how many there are.
 * @param {string} label
 * @param {number} count
 */
function kind(label, count) {
  const [example] = exampleOf(label, 1);
  const shown = data.pictures ? image(example ?? picturesOf(label), "") : make("q", { dir: "auto" }, example);
  const about = { type: "button", onclick: () => refilter({ show: "all", label, proposal: null }) };
  return make("li", {}, make("button", about, shown, make("span", {}, named(label, "b"), " " + spelled(count))));
}

/** A picture of what the model calls so. @param {string} label */
const picturesOf = (label) => data.pictures?.[data.names.findIndex((_, item) => labelOf(item) === label)] ?? null;

/** The end: what was written, or what can be; and the kinds. */
export function drawEnd() {
  const counts = [...countedLabels(data.names.keys())];
  const kinds = counts.flatMap(([label, count]) => (label === null || label === UNNAMED ? [] : [kind(label, count)]));
  const style = "kinds " + (data.pictures ? "pictures" : "lines");
  return [
    make("div", { class: "ends" }, ...(written === null ? endPieces() : writtenPieces(written))),
    make("ul", { class: style, "aria-label": counted(kinds.length, "class", "classes") }, ...kinds),
  ];
}
