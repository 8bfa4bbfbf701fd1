// Filters beside the list: views, groups without a name, and classes, each with the number of items it would show.

import { byId, inputOf, make, spelled } from "./elements.js";
import { onDraw } from "./drawing.js";
import { ASKED, VIEWS, filter, inGroup, nameOfView, ofProposal, ofView, refilter } from "./filter.js";
import { icon } from "./colours.js";
import { named } from "./names.js";
import { UNNAMED, byDoubt, called, countedLabels, data } from "./state.js";

// Classes listed, and how many there must be for a field that finds one.
const CLASSES_LISTED = 300;
const MANY_CLASSES = 12;

/**
 * @param {string} text
 * @param {number | null} count
 * @param {boolean} isPressed
 * @param {() => void} does
 * @param {Element} [before]
 */
function choice(text, count, isPressed, does, before) {
  const name = make("span", {}, before, named(text));
  const number = make("span", {}, count === null ? "" : spelled(count));
  return make(
    "button",
    { type: "button", class: "choice", "aria-pressed": String(isPressed), onclick: does },
    name,
    number,
  );
}

function viewChoices() {
  const listed = VIEWS.filter(({ key, test, order }) => {
    if (key === ASKED) return data.ask !== undefined && !document.documentElement.dataset.finished;
    return key === "all" || key === filter.show || order().some(test);
  });
  return listed.map((view) => {
    const isPressed = filter.show === view.key && filter.proposal === null && filter.words === "";
    const isLabel = view.key === "unnamed" || view.key === "unknown"; // no class has such items
    const count = view.key === ASKED ? null : (isLabel ? view.order().filter(view.test) : ofView(view)).length;
    const does = () => refilter({ show: view.key, proposal: null, ...(isLabel ? { label: null } : {}) });
    return choice(nameOfView(view), count, isPressed, does);
  });
}

function proposalChoices() {
  return data.proposals
    .map((proposal, place) => ({ proposal, place }))
    .filter(({ proposal }) => filter.group === null || proposal.group === filter.group)
    .map(({ proposal, place }) => {
      const isPressed = filter.proposal === place;
      const does = () => refilter({ proposal: isPressed ? null : place, label: null });
      return choice(proposal.name, ofProposal(proposal).length, isPressed, does);
    });
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
    return choice(label, count, isPressed, does, icon(label));
  });
}

function drawSide() {
  if (filter.proposal !== null && filter.proposal >= data.proposals.length) filter.proposal = null;
  byId("views").replaceChildren(...viewChoices());
  const proposals = proposalChoices();
  byId("proposals").hidden = !proposals.length;
  byId("proposal-list").replaceChildren(...proposals);
  const classes = classChoices();
  byId("class-list").replaceChildren(...classes);
  byId("classes-title").hidden = !data.classes.length;
  if (data.groups)
    /** @type {HTMLSelectElement} */ (byId("group")).value = filter.group === null ? "" : String(filter.group);
}

export function startSide() {
  onDraw(drawSide);
  inputOf("class-words").addEventListener("input", drawSide);
  const side = byId("side");
  byId("filters-toggle").addEventListener("click", () => side.classList.toggle("open"));
  // On a phone filters lie above the list; once one is chosen they only hide it.
  side.addEventListener("click", (event) => {
    if (/** @type {Element} */ (event.target).closest("button")) side.classList.remove("open");
  });
}
