// The page of a review: it asks, sends every answer to its server, and shows the labels that come back.

import { byId, counted, keyed, make, note } from "./elements.js";
import { additions } from "./additions.js";
import { current, draw, onDraw } from "./drawing.js";
import {
  ASKED,
  HISTORY,
  filter,
  isAsking,
  listenToGroups,
  listenToSearch,
  opened,
  picked,
  refilter,
} from "./filter.js";
import { larger, smaller } from "./grid.js";
import {
  acceptAll,
  acceptable,
  answerGroup,
  changeAnswer,
  classOfPicks,
  clear,
  confirm,
  correct,
  dropClass,
  leaveOpen,
  mergeClass,
  nameAnswer,
  nameNew,
  nameProposal,
  noneOfPicks,
  openPicks,
  renameClass,
  saidFor,
  sayBad,
  sayNone,
  takeAnswerBack,
  takeChoice,
  undoLast,
} from "./answers.js";
import { answersTo, startAsked } from "./asked.js";
import { askFinish } from "./end.js";
import { listenToDialogs } from "./dialogs.js";
import { startAbout } from "./about.js";
import { listenToKeys } from "./keys.js";
import { startHistory } from "./history.js";
import { openFirst, startList, startRows } from "./list.js";
import { exampleOf } from "./item.js";
import { untilOpened } from "./opening.js";
import { startPanel } from "./panel.js";
import { named } from "./names.js";
import { enlargeItem, image, listenToPicture } from "./pictures.js";
import { startProgress } from "./progress.js";
import { askedNow, subject } from "./question.js";
import { noteNews, startLooking } from "./server.js";
import { isSheet, sheetKeys } from "./sheet.js";
import { startSide } from "./side.js";
import { data, decisions, labelOf, noneWords } from "./state.js";

// -- what a review adds to the parts of a report --------------------------------------------------------------------

additions.item = (item) => {
  const about = subject();
  if (about === null) return [];
  const [choices, others] = answersTo(about);
  const proposal = data.proposal[item] - 1;
  if (proposal >= 0) {
    others.append(keyed("Name all of " + data.proposals[proposal].name + "…", "g", () => nameProposal(proposal)));
  }
  if (decisions.has(item)) others.append(make("button", { type: "button", onclick: clear }, "Take your answer back"));
  return [choices, others];
};

/** Choose an item of the list as one of several, or take that back. @param {number} item */
function togglePick(item) {
  if (picked.has(item)) picked.delete(item);
  else picked.add(item);
  draw();
}

additions.card = (item) => {
  const isPicked = picked.has(item);
  const about = { type: "button", class: "pick", "aria-pressed": String(isPicked), tabindex: "-1" };
  const button = make("button", { ...about, "aria-label": "Choose: " + data.names[item] }, isPicked ? "✓" : "");
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    togglePick(item);
  });
  return [button];
};

/** A picture next to the name of a class. @param {string | null} picture */
const face = (picture) => image(picture, "", { style: "face" });

additions.icon = (label) => {
  const [found] = data.pictures ? exampleOf(label, 1) : [];
  const item = data.pictures ? data.names.findIndex((_, at) => labelOf(at) === label) : -1;
  return found ? face(found) : item >= 0 && data.pictures ? face(data.pictures[item]) : undefined;
};

additions.face = ([item]) => (data.pictures && item !== undefined ? face(data.pictures[item]) : undefined);

additions.label = (label) => {
  const n = [...decisions.values()].filter((said) => said.label === label).length;
  const seen = make(
    "p",
    { class: "quiet" },
    n ? counted(n, "of them you named.", "of them you named.") : "Nobody has seen one of them yet.",
  );
  const hint = make("p", { class: "quiet" }, "Is something else among them? Choose it, and say what it is.");
  const buttons = [
    keyed("Rename…", "r", renameClass, { id: "rename" }),
    make("button", { type: "button", id: "merge", onclick: mergeClass }, "Same as…"),
    make("button", { type: "button", id: "remove", onclick: dropClass }, "Remove…"),
  ];
  return [seen, hint, make("p", { class: "buttons" }, ...buttons)];
};

// Names that one click gives to what an answer was about.
const NAMES_OFFERED = 9;

additions.answer = () => {
  const names = data.classes
    .filter((label) => opened.items.some((item) => labelOf(item) !== label))
    .slice(0, NAMES_OFFERED)
    .map((label) =>
      make(
        "button",
        { type: "button", class: "chip", onclick: () => changeAnswer(saidFor(label), label) },
        named(label),
      ),
    );
  const others = [
    make("button", { type: "button", onclick: nameAnswer }, "Other class…"),
    make("button", { type: "button", onclick: () => changeAnswer("none", null) }, noneWords()),
    make("button", { type: "button", id: "take-back", onclick: takeAnswerBack }, "Take it back"),
  ];
  return [
    make("p", { class: "quiet" }, "They are something else:"),
    make("p", { class: "buttons" }, ...names, ...others),
  ];
};

additions.proposal = (place) => {
  const name = keyed("Name them…", "g", () => nameProposal(place), { class: "main", id: "name-group" });
  return [make("p", { class: "buttons" }, name)];
};

additions.picks = () => {
  const open = openPicks().length;
  const kept = picked.size - open;
  const said = kept
    ? kept + (kept === 1 ? " is answered already, and stays as it is." : " are answered already, and stay as they are.")
    : "";
  const about = { class: "main", id: "one-class", disabled: !open || null };
  const one = keyed("One class for all…", "g", classOfPicks, about);
  const none = make(
    "button",
    { type: "button", id: "no-class", disabled: !open || null, onclick: noneOfPicks },
    noneWords() + ", all",
  );
  return [make("p", { class: "quiet" }, said), make("p", { class: "buttons" }, one, none)];
};

function drawAccept() {
  const n = acceptable().length;
  byId("accept").hidden = n === 0;
  byId("accept").replaceChildren("Accept all " + n, make("kbd", {}, "a"));
}

// -- places ---------------------------------------------------------------------------------------------------------

/** Go to what is asked, to everything, or to what was answered. @param {string} place */
function go(place) {
  closeMenu();
  note("");
  refilter({ show: place, label: null, proposal: null });
}

function drawPlaces() {
  const place = filter.show === HISTORY || filter.show === ASKED ? filter.show : "all";
  document.body.dataset.place = isAsking() ? ASKED : place === ASKED ? "all" : place;
  byId("to-all").textContent = "All " + data.words[1];
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#places button"))) {
    const isHere = button.dataset.to === document.body.dataset.place;
    if (isHere) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
  }
}

/** @param {boolean} opens */
function showMenu(opens) {
  byId("menu").classList.toggle("open", opens);
  byId("menu-toggle").setAttribute("aria-expanded", String(opens));
}

const closeMenu = () => showMenu(false);

function startPlaces() {
  onDraw(drawPlaces);
  for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#places button"))) {
    button.addEventListener("click", () => go(button.dataset.to ?? ASKED));
  }
  byId("menu-toggle").addEventListener("click", () => showMenu(!byId("menu").classList.contains("open")));
  byId("larger").addEventListener("click", larger);
  byId("smaller").addEventListener("click", smaller);
}

// -- keys -----------------------------------------------------------------------------------------------------------

/** @returns {Record<string, () => unknown>} */
function keys() {
  /** @type {Record<string, () => unknown>} */
  const looks = { "+": larger, "-": smaller, z: () => enlargeItem(subject()?.items[0] ?? current) };
  if (document.documentElement.dataset.finished) return looks;
  /** @type {Record<string, () => unknown>} */
  const answers = {
    ...looks,
    Enter: confirm,
    x: sayNone,
    c: correct,
    n: nameNew,
    b: sayBad,
    p: leaveOpen,
    g: answerGroup,
    a: acceptAll,
    u: undoLast,
    s: askFinish,
    h: () => go(HISTORY),
  };
  for (let place = 0; place < 9; place++) answers[String(place + 1)] = () => takeChoice(place);
  const ask = askedNow();
  if (isAsking()) {
    delete answers.a;
    return ask !== null && isSheet(ask) ? { ...answers, ...sheetKeys(ask, draw) } : answers;
  }
  const pick = () => current >= 0 && togglePick(current);
  return { ...answers, r: renameClass, " ": pick, Escape: () => go(ASKED) };
}

// -- start ----------------------------------------------------------------------------------------------------------

/**
 * A button that was clicked gives up the focus, so that Enter answers the next question.
 * @param {MouseEvent} event
 */
function giveUpFocus(event) {
  const button = /** @type {Element} */ (event.target).closest("button");
  if (event.detail > 0 && button !== null) button.blur();
}

await untilOpened();
startPlaces();
startSide();
startAbout();
startList();
startPanel();
startProgress();
startAsked();
startHistory();
onDraw(drawAccept);
startRows();
listenToGroups();
listenToSearch(openFirst);
listenToDialogs();
listenToPicture();
listenToKeys(keys);
byId("undo").addEventListener("click", undoLast);
byId("finish").addEventListener("click", askFinish);
byId("accept").addEventListener("click", acceptAll);
document.addEventListener("click", giveUpFocus);
draw();
noteNews();
startLooking();
document.documentElement.dataset.ready = "yes";
