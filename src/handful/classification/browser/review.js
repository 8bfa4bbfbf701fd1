// The page of a review: it asks, sends every answer to its server, and shows the labels that come back.

import { byId, keyed, make } from "./elements.js";
import { additions } from "./additions.js";
import { current, draw, onDraw } from "./drawing.js";
import { ASKED, isAsking, listenToGroups, listenToSearch, picked, refilter } from "./filter.js";
import {
  acceptAll,
  acceptable,
  answerGroup,
  classOfPicks,
  clear,
  confirm,
  correct,
  divideClass,
  leaveOpen,
  nameNew,
  nameProposal,
  noneOfPicks,
  openPicks,
  renameClass,
  sayBad,
  sayNone,
  takeChoice,
  undoLast,
} from "./answers.js";
import { answersTo, startAsked } from "./asked.js";
import { listenToDialogs } from "./dialogs.js";
import { startAbout } from "./about.js";
import { listenToKeys } from "./keys.js";
import { openFirst, startList } from "./list.js";
import { startMap } from "./map_box.js";
import { startPanel } from "./panel.js";
import { enlargeItem, listenToPicture } from "./pictures.js";
import { askFinish, startProgress } from "./progress.js";
import { askedNow, subject } from "./question.js";
import { load, look, noteNews } from "./server.js";
import { isSheet, sheetKeys } from "./sheet.js";
import { startSide } from "./side.js";
import { data, decisions, noneWords } from "./state.js";

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

additions.label = () =>
  data.from_nothing
    ? [
        make(
          "p",
          { class: "buttons" },
          keyed("Rename, or same as…", "r", renameClass, { id: "rename" }),
          keyed("These are two classes", "t", divideClass, { id: "divide" }),
        ),
      ]
    : [];

additions.proposal = (place) => [
  make(
    "p",
    { class: "buttons" },
    keyed("Name this group…", "g", () => nameProposal(place), { class: "main", id: "name-group" }),
  ),
];

additions.picks = () => {
  const open = openPicks().length;
  const kept = picked.size - open;
  const said = kept
    ? (kept === 1 ? "1 item is" : kept + " items are") +
      " answered already, and " +
      (kept === 1 ? "stays as it is." : "stay as they are.")
    : "";
  const one = keyed("One class for all…", "g", classOfPicks, {
    class: "main",
    id: "one-class",
    disabled: !open || null,
  });
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

// -- keys -----------------------------------------------------------------------------------------------------------

/** @returns {Record<string, () => unknown>} */
function keys() {
  if (document.documentElement.dataset.finished) return {};
  /** @type {Record<string, () => unknown>} */
  const answers = {
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
    z: () => enlargeItem(subject()?.items[0] ?? current),
  };
  for (let place = 0; place < 9; place++) answers[String(place + 1)] = () => takeChoice(place);
  const ask = askedNow();
  if (isAsking()) {
    delete answers.a;
    return ask !== null && isSheet(ask) ? { ...answers, ...sheetKeys(ask, draw) } : answers;
  }
  const back = () => refilter({ show: ASKED, label: null, proposal: null });
  return { ...answers, r: renameClass, t: divideClass, Escape: back };
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

await load();
startSide();
startAbout();
startList();
startPanel();
startProgress();
startAsked();
startMap();
onDraw(drawAccept);
listenToGroups();
listenToSearch(openFirst);
listenToDialogs();
listenToPicture();
listenToKeys(keys);
byId("undo").addEventListener("click", undoLast);
byId("finish").addEventListener("click", askFinish);
byId("accept").addEventListener("click", acceptAll);
document.addEventListener("click", giveUpFocus);
document.addEventListener("visibilitychange", look);
window.addEventListener("focus", look);
draw();
noteNews();
document.documentElement.dataset.ready = "yes";
