// Who draws what: each part of the page says here what it does when the state, the filter or the chosen item changed.

/** @type {(() => void)[]} */
const parts = [];

/** @type {((before: number, scrolls: boolean) => void)[]} */
const followers = [];

/** The item that is chosen, -1 for none. */
export let current = -1;

/**
 * Draw a part again whenever the state or the filter changed.
 * @param {() => void} part
 */
export const onDraw = (part) => void parts.push(part);

/**
 * Follow the chosen item.
 * @param {(before: number, scrolls: boolean) => void} follower
 */
export const onChoose = (follower) => void followers.push(follower);

export function draw() {
  for (const part of parts) part();
}

/**
 * Choose an item, -1 for none.
 * @param {number} item
 * @param {boolean} [scrolls]
 */
export function choose(item, scrolls = true) {
  const before = current;
  current = item;
  for (const follow of followers) follow(before, scrolls);
}

/** Forget the chosen item; the caller draws everything. */
export function forgetCurrent() {
  current = -1;
}
