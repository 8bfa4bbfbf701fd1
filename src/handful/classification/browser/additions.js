// What a review adds to parts of the page that a report has too: the answers that a person can give.

/** @typedef {import("./elements.js").Child} Child */

/**
 * About an item, a group of items without a name, and the items chosen on the map.
 * @type {{ item: (item: number) => Child[], proposal: (place: number) => Child[], picks: () => Child[] }}
 */
export const additions = { item: () => [], proposal: () => [], picks: () => [] };
