// Small pieces of the page. Everything that comes from the batch reaches it through textContent, never as markup.

/** @typedef {Node | string | null | undefined} Child */

/**
 * The element of the frame with this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error("the page has no element " + id);
  return found;
}

/** @param {string} id */
export const inputOf = (id) => /** @type {HTMLInputElement} */ (byId(id));

/** @param {string} id */
export const dialogOf = (id) => /** @type {HTMLDialogElement} */ (byId(id));

/**
 * An element: `class` sets its class, `on…` a listener, anything else an attribute; empty children are left out.
 * @param {string} tag
 * @param {Record<string, any>} properties
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

/**
 * A button with the key that does the same.
 * @param {Child} text
 * @param {string} key
 * @param {() => unknown} does
 * @param {Record<string, any>} [more]
 */
export function keyed(text, key, does, more = {}) {
  return make("button", { type: "button", ...more, onclick: does }, make("span", {}, text), make("kbd", {}, key));
}

/** @param {number} chance */
export function percent(chance) {
  if (chance >= 0.9995) return ">\u00a099.9%";
  const digits = chance > 0.99 || chance < 0.01 ? 1 : 0;
  return (100 * chance).toFixed(digits) + "%";
}

/** @param {number} count */
export const spelled = (count) => count.toLocaleString("en");

/**
 * A number with what it counts.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many) {
  return spelled(count) + " " + (count === 1 ? one : many || one + "s");
}

/**
 * An expected number of items.
 * @param {number} count
 */
export function amount(count) {
  const isWhole = Math.abs(count - Math.round(count)) < 0.05 || count >= 100;
  return isWhole ? String(Math.round(count)) : count.toFixed(1);
}

/** @param {number} share */
export function meter(share) {
  const inside = make("i", {});
  inside.style.width = 100 * share + "%";
  return make("div", { class: "meter" }, inside);
}

/**
 * Parts with a comma between them.
 * @template T
 * @param {T[]} all
 * @param {(one: T) => Child[]} parts
 * @returns {Child[]}
 */
export const joined = (all, parts) => all.flatMap((one, place) => [place ? ", " : "", ...parts(one)]);

/**
 * Say something in a line that a click folds away; nothing without a text.
 * @param {string} text
 * @param {Child} [more]
 */
export function note(text, more) {
  const place = byId("note");
  const folds = () => {
    place.hidden = true;
  };
  place.hidden = !text;
  place.replaceChildren(
    make("span", { class: "said" }, text),
    more ?? "",
    make("button", { type: "button", "aria-label": "Close", onclick: folds }, "×"),
  );
}
