// Filters next to the list: classes, groups without a name, and views, each with the number of items it would show.

import { byId, inputOf, make, spelled } from "./elements.js";
import { onDraw } from "./drawing.js";
import { additions } from "./additions.js";
import { ASKED, VIEWS, filter, inGroup, isListing, nameOfView, ofProposal, ofView, refilter } from "./filter.js";
import { named } from "./names.js";
import { UNNAMED, byDoubt, called, countedLabels, data } from "./state.js";

// Classes listed, and how many there must be for a field that finds one; groups listed until more are asked for.
const CLASSES_LISTED = 300;
const MANY_CLASSES = 12;
const GROUPS_LISTED = 5;

let showsAllGroups = false;

/**
 * @param {string} text
 * @param {number} count
 * @param {boolean} isPressed
 * @param {() => void} does
 * @param {Element} [before]
 */
function choice(text, count, isPressed, does, before) {
  const about = { type: "button", class: "choice", "aria-pressed": String(isPressed), onclick: does };
  return make("button", about, before, make("span", {}, named(text)), make("span", {}, spelled(count)));
}

function viewChoices() {
  const listed = VIEWS.filter(
    ({ key, test, order }) => key !== ASKED && (key === "all" || key === filter.show || order().some(test)),
  );
  return listed.map((view) => {
    const isPressed = filter.show === view.key && filter.proposal === null && filter.words === "";
    const isLabel = view.key === "unnamed" || view.key === "unknown"; // no class has such items
    const count = (isLabel ? view.order().filter(view.test) : ofView(view)).length;
    const does = () => refilter({ show: view.key, proposal: null, ...(isLabel ? { label: null } : {}) });
    return choice(nameOfView(view), count, isPressed, does);
  });
}

function drawProposals() {
  const there = data.proposals
    .map((proposal, place) => ({ proposal, place, items: ofProposal(proposal) }))
    .filter(({ proposal }) => filter.group === null || proposal.group === filter.group);
  const listed = showsAllGroups ? there : there.slice(0, GROUPS_LISTED);
  const choices = listed.map(({ proposal, place, items }) => {
    const isPressed = filter.proposal === place;
    const does = () => refilter({ proposal: isPressed ? null : place, label: null });
    return choice(proposal.name, items.length, isPressed, does, additions.face(items));
  });
  byId("proposals").hidden = !choices.length;
  byId("proposal-list").replaceChildren(...choices);
  const left = there.length - listed.length;
  byId("more-proposals").hidden = left === 0;
  byId("more-proposals").textContent = spelled(left) + " more";
}

function classChoices() {
  const counts = countedLabels(byDoubt.filter(inGroup));
  const words = inputOf("class-words").value.trim().toLowerCase();
  const classes = /** @type {[string, number][]} */ (
    [...counts].filter(([label]) => label !== null && label !== UNNAMED)
  );
  inputOf("class-words").hidden = classes.length < MANY_CLASSES;
  const found = classes
    .filter(([label]) => called(label).toLowerCase().includes(words))
    .sort((one, other) => other[1] - one[1] || called(one[0]).localeCompare(called(other[0])));
  return found.slice(0, CLASSES_LISTED).map(([label, count]) => {
    const isPressed = filter.label === label && filter.proposal === null;
    const does = () => refilter({ label: isPressed ? null : label, show: "all", proposal: null });
    return choice(label, count, isPressed, does, additions.icon(label));
  });
}

function drawSide() {
  if (!isListing()) return; // it is not seen
  if (filter.proposal !== null && filter.proposal >= data.proposals.length) filter.proposal = null;
  const classes = classChoices();
  byId("class-list").replaceChildren(...classes);
  byId("classes-title").hidden = !classes.length;
  drawProposals();
  byId("views").replaceChildren(...viewChoices());
  if (data.groups)
    /** @type {HTMLSelectElement} */ (byId("group")).value = filter.group === null ? "" : String(filter.group);
}

export function startSide() {
  onDraw(drawSide);
  inputOf("class-words").addEventListener("input", drawSide);
  byId("more-proposals").addEventListener("click", () => {
    showsAllGroups = true;
    drawSide();
  });
  const side = byId("side");
  byId("filters-toggle").addEventListener("click", () => side.classList.toggle("open"));
  // On a phone filters lie above the list; once one is chosen they only hide it.
  side.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (button !== null && button.id !== "more-proposals") side.classList.remove("open");
  });
}
