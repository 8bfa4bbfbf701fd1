// Pictures of items and examples. A review serves them by their ids, also at full size; a report has them inside.

import { byId, dialogOf, make } from "./elements.js";
import { data, wordsOf } from "./state.js";

/** Whether a server has the pictures. */
const served = document.getElementById("data") === null;

/**
 * A picture, or its name if there is none; in a review a click shows it at full size, unless it is part of a button.
 * @param {string | null} picture
 * @param {string} name
 * @param {{ style?: string, grows?: boolean, isSharp?: boolean }} [how]
 */
export function image(picture, name, { style = "", grows = false, isSharp = false } = {}) {
  if (!picture) return make("div", { class: "gone" }, name);
  const place = isSharp ? "full/" : "media/";
  const address = (served ? place : "data:image/jpeg;base64,") + picture;
  const element = make("img", { src: address, alt: name, loading: "lazy" });
  if (!grows || !served) {
    element.className = style;
    return element;
  }
  const label = "Full size: " + name;
  const button = make("button", {
    type: "button",
    class: "grows " + style,
    "aria-label": label,
    title: "Full size (z)",
  });
  button.addEventListener("click", (event) => enlargeBy(event, picture, name));
  button.append(element);
  return button;
}

/**
 * Show a picture at full size.
 * @param {string} picture
 * @param {string} name
 */
function enlarge(picture, name) {
  show(make("img", { src: "full/" + picture, alt: name }), name);
}

/**
 * @param {HTMLElement} large
 * @param {string} name
 */
function show(large, name) {
  byId("picture-shown").replaceChildren(large);
  byId("picture-name").textContent = name;
  dialogOf("picture").showModal();
}

/**
 * Show a picture whose button was clicked. By a pointer, the button gives up the focus: Enter then answers again.
 * @param {MouseEvent} event
 * @param {string} picture
 * @param {string} name
 */
function enlargeBy(event, picture, name) {
  if (event.detail > 0) /** @type {HTMLElement} */ (event.currentTarget).blur();
  enlarge(picture, name);
}

/**
 * A small button beside the picture of an item that shows it at full size.
 * @param {number} item
 */
export function zoomButton(item) {
  const name = data.names[item];
  const about = { type: "button", class: "zoom", "aria-label": "Full size: " + name, title: "Full size (z)" };
  const button = make("button", about, "⤢");
  button.addEventListener("click", (event) => {
    if (event.detail > 0) button.blur();
    enlargeItem(item);
  });
  return button;
}

/**
 * Show an item at full size, or all of its words.
 * @param {number} item
 */
export function enlargeItem(item) {
  if (!served || item < 0) return;
  const picture = data.pictures?.[item];
  if (picture) enlarge(picture, data.names[item]);
  else show(make("blockquote", { dir: "auto" }, wordsOf(item)), data.names[item]);
}

/** A click anywhere, or z, closes the picture. */
export function listenToPicture() {
  const dialog = dialogOf("picture");
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (event.key !== "z" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    dialog.close();
  });
}
