// What is seen until a review can ask: photographs as they come, and how long it still takes.

import { byId, make, spelled } from "./elements.js";
import { image } from "./pictures.js";
import { load } from "./server.js";

/** @typedef {{ done: number, total: number, left: string, pictures: (string | null)[] }} Opening */

// Milliseconds between two looks, and pictures that are shown, the last ones that came.
const PAUSE = 700;
const MOST_SHOWN = 60;

/** @type {Map<string, HTMLElement>} */
const faces = new Map();

/** @param {string | null} picture */
function faceOf(picture) {
  const found = faces.get(picture ?? "") ?? image(picture, "", { style: "coming" });
  faces.set(picture ?? "", found);
  return found;
}

/** @param {Opening} opening */
function drawOpening({ done, total, left, pictures }) {
  const said = total ? spelled(done) + " of " + spelled(total) + " are read" + (left ? ", " + left : "") : "";
  byId("progress-left").textContent = said || "Opening…";
  document.body.dataset.place = "asked";
  byId("panel").hidden = true;
  byId("asked").hidden = false;
  byId("asked").replaceChildren(
    make(
      "div",
      { class: "title" },
      make("h2", {}, pictures.length ? "Your photographs are being read" : "Your review is being opened"),
    ),
    make("div", { class: "comes" }, ...pictures.slice(-MOST_SHOWN).map(faceOf)),
  );
}

/** Wait until there is a review. */
export async function untilOpened() {
  for (;;) {
    const opening = await load();
    if (opening === null) return;
    drawOpening(opening);
    await new Promise((goOn) => setTimeout(goOn, PAUSE));
  }
}
