// What a review adds to parts of the page that a report has too: the answers that a person can give.

/** @typedef {import("./elements.js").Child} Child */

/**
 * About an item, a class, a group of items without a name, and the items chosen on the map.
 * @typedef {object} Additions
 * @property {(item: number) => Child[]} item
 * @property {(label: string) => Child[]} label
 * @property {(place: number) => Child[]} proposal
 * @property {() => Child[]} picks
 */

/** @type {Additions} */
export const additions = { item: () => [], label: () => [], proposal: () => [], picks: () => [] };
