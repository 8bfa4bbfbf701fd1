// What a page adds to the parts that reports and reviews have: a review its answers, a report the marks of its map.

/** @typedef {import("./elements.js").Child} Child */

/**
 * About an item, on its tile and next to the list; about a class, what stands before its name, and what before that of
 * a group; a group without a name; items that were chosen; and an answer that is looked at.
 * @typedef {object} Additions
 * @property {(item: number) => Child[]} item
 * @property {(item: number) => Child[]} card
 * @property {(label: string) => Child[]} label
 * @property {(label: string) => Element | undefined} icon
 * @property {(items: number[]) => Element | undefined} face
 * @property {(place: number) => Child[]} proposal
 * @property {() => Child[]} picks
 * @property {() => Child[]} answer
 */

/** @type {Additions} */
export const additions = {
  item: () => [],
  card: () => [],
  label: () => [],
  icon: () => undefined,
  face: () => undefined,
  proposal: () => [],
  picks: () => [],
  answer: () => [],
};
