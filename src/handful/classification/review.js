// The page of a batch: filters, a list of items, one item in detail, and decisions that are saved as corrections.
// From a file it has the items inside. From `handful review` it asks for them, sends every decision, and shows the labels
// that come back. Everything that comes from the batch reaches the page through textContent, never as markup.
"use strict";
(async () => {
  const byId = (id) => document.getElementById(id);
  const inside = byId("data");
  const live = inside === null;
  const data = live ? await (await fetch("state")).json() : JSON.parse(inside.textContent);
  const nItems = data.rows.length;
  // Items added to the list at once; more follow when its end is near.
  const PORTION = 60;
  const MOST_OPTIONS = 12;
  // -- decisions ------------------------------------------------------------------------------------------------------

  // Item to {kind: "confirmed" | "corrected" | "none" | "new" | "bad" | "skip", label}. Without a class the label is null.
  const decisions = new Map();
  const history = [];
  let stored = true;
  let saved = true;

  let inCatalogue = new Set();
  const NONE = "None of these";
  const classOf = (item) => data.classes[data.label[item]];
  // What is shown first about an item and what second, each with the chance that it is right: a class and its runner-up;
  // of an unknown item, none of these and the least bad class.
  const answerOf = (item) => (data.rejected[item] ? null : classOf(item));
  const secondOf = (item) => (data.rejected[item] ? classOf(item) : data.second[item] >= 0 && data.second_certainty[item] >= 0.0005 ? data.classes[data.second[item]] : null);
  const certaintyOf = (item) => (data.rejected[item] ? data.unknown[item] : data.certainty[item]);
  const secondCertaintyOf = (item) => (data.rejected[item] ? data.certainty[item] : data.second_certainty[item]);
  const saidOf = (item) => { const decision = decisions.get(item); return decision !== undefined && decision.kind !== "skip" ? decision : undefined; };
  const labelOf = (item) => (saidOf(item) ? saidOf(item).label : answerOf(item));
  // A label that a person must not see: the item is asked to find out how many labels are wrong.
  const isHidden = (item) => live && item === data.audit && !decisions.has(item);

  // What a person says: "class", "new", "none", "bad" or "skip". A label that is no class of the catalogue is new.
  function decisionAbout(item, said, label) {
    if (said === "bad" || said === "skip") return { kind: said, label: null };
    const kind = label === null ? "none" : !inCatalogue.has(label) ? "new" : label === answerOf(item) ? "confirmed" : "corrected";
    return { kind, label };
  }

  function put(item, decision) {
    if (decision === undefined) decisions.delete(item);
    else decisions.set(item, decision);
  }

  // One step of the reviewer, undone as one: what is said about items, or "clear" if it is taken back.
  async function decide(items, said, labels, several = false) {
    if (live) {
      const how = several ? "group" : items[0] === data.audit ? "audit" : data.first.includes(items[0]) ? "asked" : "chosen";
      return send("decide", { items, said, labels, how });
    }
    history.push(items.map((item) => [item, decisions.get(item)]));
    items.forEach((item, place) => put(item, said === "clear" ? undefined : decisionAbout(item, said, labels[place])));
    changed(items);
    return true;
  }

  async function undo() {
    if (live) {
      if (!data.n_steps) return;
      const back = await send("undo", {});
      if (back) choose(data.back);
      return;
    }
    const before = history.pop();
    if (before === undefined) return;
    for (const [item, decision] of before) put(item, decision);
    changed(before.map(([item]) => item));
    if (before.length === 1) choose(before[0][0]);
  }

  function changed(items) {
    saved = false;
    keep();
    for (const item of items) redraw(item);
    drawCounter();
    drawSide();
    drawPanel();
    drawAbout();
    drawAccept();
    drawMap();
  }

  // A page opened from a file may have no storage; then decisions live as long as the page. A page that was written with
  // corrections starts from these, and not from what an earlier page kept.
  const given = [...JSON.stringify(data.given)].reduce((hash, letter) => (hash * 31 + letter.codePointAt(0)) | 0, 0);
  const STORE = "handful corrections " + data.batch + " " + given;

  function keep() {
    try {
      localStorage.setItem(STORE, JSON.stringify([...decisions].map(([item, d]) => [data.rows[item], d.label, d.kind])));
    } catch (error) {
      stored = false;
    }
  }

  function restore() {
    const places = new Map(data.rows.map((row, item) => [row, item]));
    let before = data.given;
    try {
      const found = JSON.parse(localStorage.getItem(STORE) || "null");
      if (Array.isArray(found)) before = found;
    } catch (error) {
      stored = false;
    }
    for (const [row, label, kind] of before) {
      if (places.has(row) && (label === null || typeof label === "string")) decisions.set(places.get(row), decisionAbout(places.get(row), kind, label));
    }
  }

  // -- the server -----------------------------------------------------------------------------------------------------

  let busy = false;

  function note(text, more) {
    byId("note").hidden = !text;
    byId("note").replaceChildren(text || "", more || "");
  }

  // Every request says which state the page shows; the answer is the next state, or why there is none.
  async function send(what, body) {
    if (busy) return false;
    busy = true;
    document.documentElement.dataset.busy = "yes";
    try {
      const answer = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ number: data.number, ...body }) });
      const found = await answer.json();
      if (answer.ok) {
        if (what !== "finish") update(found);
        return found;
      }
      if (answer.status === 409) {
        await catchUp();
        note("Another window has answered since. This one is up to date now; your last answer was not counted.");
      } else note(answer.status === 401 ? "The server was started again: open the address that it printed. Nothing is lost." : found.error);
    } catch (error) {
      note("The server does not answer. Start the same command again: everything up to your last answer is kept.");
    } finally {
      busy = false;
      delete document.documentElement.dataset.busy;
    }
    return false;
  }

  async function catchUp() {
    const answer = await fetch("state");
    if (answer.ok) update(await answer.json());
  }

  // A window that comes to the front looks whether another one has answered.
  async function look() {
    if (document.hidden || busy) return;
    const answer = await fetch("number").catch(() => null);
    if (answer === null || !answer.ok || (await answer.json()).number === data.number) return;
    await catchUp();
    note("Another window has answered since. This one is up to date now.");
  }

  function update(found) {
    Object.assign(data, found);
    const n = data.changed.length;
    note(n ? (data.undid ? "Undone: " : "Your answer changed ") + counted(n, "other label") + (data.undid ? " changed back." : ".") : data.undid ? "Undone." : "", n ? make("button", { class: "link", onclick: () => refilter({ show: "changed", label: null, proposal: null }) }, "Show") : "");
    ready();
    drawCounter();
    drawSide();
    drawAbout();
    drawList();
    if (current < 0 && filter.show === "first" && shown.length) choose(shown[0]);
  }

  function adopt() {
    decisions.clear();
    for (const [item, kind, label, was] of data.decisions) {
      decisions.set(item, { kind: kind === "class" ? (label === was ? "confirmed" : "corrected") : kind, label });
    }
  }

  // What the page looks up, made again when labels change.
  function ready() {
    inCatalogue = new Set(data.classes.slice(0, data.n_known));
    if (live) adopt();
    if (live) document.documentElement.dataset.number = data.number;
    calledOf = new Map(data.classes.map((label, code) => [label, data.called[code]]));
    examplesByClass = new Map();
    data.examples.forEach(([code], place) => {
      if (!examplesByClass.has(code)) examplesByClass.set(code, []);
      examplesByClass.get(code).push(place);
    });
    byDoubt = [...data.rows.keys()].sort((one, other) => data.certainty[one] - data.certainty[other] || one - other);
    byUnknown = data.unknown ? [...byDoubt].sort((one, other) => data.unknown[other] - data.unknown[one]) : byDoubt;
    if (data.proposals.length <= filter.proposal) filter.proposal = null;
  }

  // -- the file -------------------------------------------------------------------------------------------------------

  function corrections() {
    const file = { handful_corrections: 3, corrections: [], new_classes: [], confirmed: [], none_of_these: [] };
    const classes = new Map();
    for (const [item, { kind, label }] of [...decisions].sort((one, other) => one[0] - other[0])) {
      const where = { row: data.rows[item], item: data.names[item], content: data.contents[item] };
      if (kind === "new") {
        if (!classes.has(label)) classes.set(label, []);
        classes.get(label).push(where);
      } else if (kind === "none" || kind === "bad") {
        file.none_of_these.push(kind === "bad" ? { ...where, bad: true } : where);
      } else if (kind !== "skip") {
        (kind === "confirmed" ? file.confirmed : file.corrections).push({ ...where, label });
      }
    }
    file.new_classes = [...classes].map(([label, items]) => ({ label, items }));
    return file;
  }

  function save() {
    if (live) return finish();
    const address = URL.createObjectURL(new Blob([JSON.stringify(corrections(), null, 1)], { type: "application/json" }));
    const name = data.title.replace(/[\\/:*?"<>|]+/g, "_") + ".corrections.json";
    const link = make("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    saved = true;
    drawCounter();
    const command = data.command + " --given " + (/^[\w.\-]+$/.test(name) ? name : "'" + name.replace(/'/g, "'\\''") + "'") + " --out labels.csv --report labels.html";
    note("Saved " + counted(decisions.size, "answer") + " as " + name + ", among your downloads. To label the other items with them, run this command there, with the other options of the first run: ", make("code", {}, command));
  }

  // Labels are written once more, and what was confirmed may join the catalogue.
  function finish() {
    const more = data.can_add ? make("label", {}, make("input", { type: "checkbox", id: "add" }), " Add the " + counted(data.n_confirmed, "item") + " with a confirmed class to the catalogue") : "";
    sure("Write the labels of " + counted(nItems + data.left_out, "item") + " to " + data.out + ", and your answers beside them? " + data.progress.said, "Write them", async () => {
      const found = await send("finish", { add: more !== "" && byId("add").checked });
      if (!found) return;
      document.documentElement.dataset.finished = "yes";
      note("Written: " + found.written.join(", ") + ". You can close this page. ", found.command ? make("span", {}, "To keep what you confirmed for later batches, run: ", make("code", {}, found.command)) : "");
    }, more);
  }

  // Ask before something that concerns many items.
  function sure(said, yes, does, more) {
    byId("sure-said").textContent = said;
    byId("sure-more").replaceChildren(more || "");
    byId("sure-yes").textContent = yes;
    byId("sure-yes").onclick = () => {
      byId("sure").close();
      does();
    };
    byId("sure").showModal();
    byId("sure-yes").focus();
  }

  // -- small pieces ---------------------------------------------------------------------------------------------------

  function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return element;
  }

  // What a class is called on the page; its own name is for files.
  let calledOf = new Map();
  const called = (label) => calledOf.get(label) ?? label;

  // Names break after punctuation, not inside a word; their direction is their own.
  function named(text, tag = "bdi") {
    if (text === null) return make(tag, {}, NONE);
    const element = make(tag, { dir: "auto" });
    called(text).split(/(?<=[_/.\-\\])/).forEach((part, place) => element.append(...(place ? [make("wbr"), part] : [part])));
    return element;
  }

  function percent(chance) {
    if (chance >= 0.9995) return ">\u00a099.9\u00a0%";
    return (100 * chance).toFixed(chance > 0.99 || chance < 0.01 ? 1 : 0) + "\u00a0%";
  }

  function counted(count, one, many) {
    return count.toLocaleString("en") + " " + (count === 1 ? one : many || one + "s");
  }

  const amount = (count) => (Math.abs(count - Math.round(count)) < 0.05 || count >= 100 ? String(Math.round(count)) : count.toFixed(1));
  const address = (picture) => (live ? "media/" : "data:image/jpeg;base64,") + picture;

  function image(picture, name, style) {
    if (!picture) return make("div", { class: "gone" }, name);
    return make("img", { src: address(picture), alt: name, loading: "lazy", class: style || "" });
  }

  const meter = (share) => {
    const inside = make("i");
    inside.style.width = 100 * share + "%";
    return make("div", { class: "meter" }, inside);
  };

  const wordsOf = (item) => (data.texts ? data.texts[item] : data.names[item]);

  // Examples of the catalogue: sentences below one another, pictures side by side.
  function examplesOf(places, said) {
    if (!places || !places.length) return "";
    const pieces = places.map((place) => {
      const [, content, name] = data.examples[place];
      return data.pictures ? image(content, name) : make("li", { dir: "auto" }, content);
    });
    return make("div", { class: "like" }, make("small", { class: "quiet" }, ...said), make(data.pictures ? "div" : "ul", { class: data.pictures ? "strip" : "" }, ...pieces));
  }

  let examplesByClass = new Map();

  // -- filters --------------------------------------------------------------------------------------------------------

  const filter = { show: "all", label: null, group: null, proposal: null, words: "" };
  const lowered = data.names.map((name, item) => (name + " " + (data.texts ? data.texts[item] : "")).toLowerCase());
  let byDoubt = [];
  let byUnknown = [];

  const VIEWS = [
    ["first", "Look at these first", () => true, () => data.first],
    ["changed", "Changed by your answer", () => true, () => data.changed || []],
    ["map", "Chosen on the map", (item) => picked.has(item), () => byDoubt],
    ["doubt", "In doubt", (item) => data.doubtful[item], () => byDoubt],
    ["unknown", NONE, (item) => labelOf(item) === null, () => byUnknown],
    ["todo", "Not reviewed yet", (item) => !decisions.has(item), () => byDoubt],
    ["skipped", "Passed", (item) => decisions.has(item) && decisions.get(item).kind === "skip", () => byDoubt],
    ["done", "Looked at", (item) => saidOf(item), () => byDoubt],
    ["all", "All items", () => true, () => byDoubt],
  ];
  const inGroup = (item) => filter.group === null || data.group[item] === filter.group;

  const hasWords = (item) => filter.words === "" || lowered[item].includes(filter.words);
  const hasLabel = (item) => filter.label === null || labelOf(item) === filter.label;

  // A new group is shown as a whole; a view and a class combine. The number beside a filter is what it would show.
  const ofView = ([, , test, order]) => order().filter((item) => test(item) && hasLabel(item) && inGroup(item) && hasWords(item));
  const ofProposal = (proposal) => proposal.items.filter((item) => inGroup(item) && hasWords(item));

  function matching() {
    return filter.proposal === null ? ofView(VIEWS.find(([key]) => key === filter.show)) : ofProposal(data.proposals[filter.proposal]);
  }

  // What is chosen, beside the number of items; a click on it clears it.
  function drawChips() {
    const chips = [];
    const chip = (text, clear) => chips.push(make("button", { class: "chip", title: "Clear this filter", onclick: clear }, text === null || typeof text === "string" ? named(text) : text, make("span", { "aria-hidden": "true" }, "×")));
    if (filter.proposal !== null) chip(data.proposals[filter.proposal].name, () => refilter({ proposal: null }));
    else {
      if (filter.show !== "all") chip(VIEWS.find(([key]) => key === filter.show)[1], () => refilter({ show: "all" }));
      if (filter.label !== null) chip(filter.label, () => refilter({ label: null }));
    }
    if (filter.group !== null) chip(data.groups[filter.group], () => chooseGroup(null));
    if (filter.words !== "") chip("“" + filter.words + "”", () => search(""));
    if (chips.length > 1) chips.push(make("button", { class: "chip", onclick: clearAll }, "Clear all"));
    byId("chips").replaceChildren(...chips);
  }

  function search(words) {
    if (byId("search").value !== words) byId("search").value = words;
    refilter({ words: words.trim().toLowerCase() });
  }

  function clearAll() {
    byId("search").value = "";
    if (data.groups) byId("group").value = "";
    refilter({ show: "all", label: null, group: null, proposal: null, words: "" });
  }

  // -- the list -------------------------------------------------------------------------------------------------------

  let shown = [];
  let drawn = 0;
  let map = null;
  let current = -1;
  let whyOpen = true;
  const cards = new Map();

  const DONE = { confirmed: "✓ confirmed", corrected: "✓ corrected", none: "✓ your answer", new: "✓ new class", bad: "✓ bad item", skip: "passed" };

  function card(item) {
    const told = make("div", { class: "told" });
    const element = make("li", { role: "option", id: "item-" + item, onclick: () => choose(item) });
    if (data.doubtful[item] || data.rejected[item]) element.classList.add("doubt");
    if (data.pictures) {
      element.append(image(data.pictures[item], data.names[item]));
      told.append(make("small", { class: "quiet name", title: data.names[item] }, make("bdi", { dir: "auto" }, data.names[item])));
    } else {
      element.append(make("div", { dir: "auto" }, wordsOf(item)));
    }
    const decision = decisions.get(item);
    if (live && data.changed.includes(item)) element.classList.add("changed");
    if (isHidden(item)) {
      told.append(make("small", { class: "quiet" }, "A check: its label is hidden"));
      element.append(told);
      element.setAttribute("aria-selected", item === current);
      return element;
    }
    told.append(make("div", { class: "head" }, named(labelOf(item), "b"), make("span", {}, saidOf(item) ? "" : percent(certaintyOf(item)))));
    if (decision) told.append(make("small", { class: "done" }, DONE[decision.kind]));
    if (!saidOf(item)) {
      told.append(meter(certaintyOf(item)));
      if (data.rejected[item]) told.append(make("small", { class: "quiet" }, "most like ", named(classOf(item))));
      else if (secondCertaintyOf(item) >= 0.005) told.append(make("small", { class: "quiet" }, "or ", named(secondOf(item)), ", " + percent(secondCertaintyOf(item))));
      told.append(...coarseOf(item));
    }
    element.append(told);
    element.setAttribute("aria-selected", item === current);
    return element;
  }

  // The coarse class of an item, where its classes cannot be told apart.
  function coarseOf(item) {
    if (!data.coarse || data.rejected[item] || data.coarse_certainty[item] < data.certainty[item] + 0.005) return [];
    return [make("small", { class: "quiet" }, "any ", named(data.coarse[item]), ", " + percent(data.coarse_certainty[item]))];
  }

  function drawMore() {
    const next = shown.slice(drawn, drawn + PORTION);
    const made = next.map((item) => {
      const element = card(item);
      cards.set(item, element);
      return element;
    });
    byId("list").append(...made);
    drawn += next.length;
    byId("more").hidden = drawn >= shown.length;
    byId("more").firstElementChild.textContent = "Show more of " + shown.length.toLocaleString("en");
  }

  function redraw(item) {
    if (!cards.has(item)) return;
    const element = card(item);
    cards.get(item).replaceWith(element);
    cards.set(item, element);
  }

  function drawList() {
    shown = matching();
    drawn = 0;
    cards.clear();
    byId("list").replaceChildren();
    byId("nothing").hidden = shown.length > 0;
    byId("nothing").textContent = live && filter.show === "first" ? "Nothing is left that is worth asking." : "No item matches.";
    byId("matches").textContent = counted(shown.length, "item") + (data.left_out ? " of the " + nItems.toLocaleString("en") + " on this page; " + data.left_out.toLocaleString("en") + " more certain ones are in the table of predictions" : "");
    drawChips();
    drawMore();
    drawAccept();
    if (!shown.includes(current)) current = -1;
    drawPanel();
    drawMap();
  }

  // Items listed that have no answer yet can be accepted at once; those that a person answered stay as they are.
  const acceptable = () => shown.filter((item) => !decisions.has(item) && !isHidden(item));

  function drawAccept() {
    const n = filter.show === "first" && filter.proposal === null ? 0 : acceptable().length;
    byId("accept").hidden = n < 2;
    byId("accept").replaceChildren("Accept all " + n.toLocaleString("en"), make("kbd", {}, "a"));
  }

  function accept() {
    if (byId("accept").hidden) return;
    const open = acceptable();
    const classed = open.filter((item) => answerOf(item) !== null);
    const items = classed.length ? classed : open;
    const kept = shown.length - items.length;
    sure("Confirm " + (classed.length ? "the labels of " : "that none of the classes fits ") + counted(items.length, "item") + "?" + (kept ? " " + counted(kept, "other item") + " of the list, answered before or of no class, stay" + (kept === 1 ? "s as it is." : " as they are.") : "") + " One undo takes it back.", "Confirm " + items.length.toLocaleString("en"), () => decide(items, classed.length ? "class" : "none", items.map(answerOf), true));
  }

  function refilter(changes) {
    Object.assign(filter, changes);
    drawSide();
    drawAbout();
    drawList();
  }

  function choose(item, scrolls = true) {
    const before = current;
    current = item;
    if (cards.has(before)) cards.get(before).setAttribute("aria-selected", false);
    while (!cards.has(item) && drawn < shown.length) drawMore();
    if (cards.has(item)) {
      cards.get(item).setAttribute("aria-selected", true);
      if (scrolls) cards.get(item).scrollIntoView({ block: "nearest" });
    }
    drawPanel();
    if (map) map.point();
  }

  function move(steps) {
    if (!shown.length) return;
    const place = shown.indexOf(current);
    choose(shown[place < 0 ? 0 : Math.min(Math.max(place + steps, 0), shown.length - 1)]);
  }

  function perRow() {
    if (!data.pictures) return 1;
    return getComputedStyle(byId("list")).gridTemplateColumns.split(" ").length;
  }

  // -- the map --------------------------------------------------------------------------------------------------------

  // Classes with a colour and a mark of their own: those that the map separates, then any that comes up.
  const MOST_COLOURED = 14;
  const picked = new Set();
  const numbers = new Map();

  function countLabels() {
    const counts = new Map();
    for (const item of byDoubt) if (inGroup(item) && hasWords(item) && !isHidden(item)) counts.set(labelOf(item), (counts.get(labelOf(item)) || 0) + 1);
    return new Map([...counts].sort((one, other) => other[1] - one[1]));
  }

  const numberOf = (label) => (label === null ? null : numbers.get(label) ?? -1);

  function pick(items) {
    picked.clear();
    for (const item of items) picked.add(item);
    refilter({ show: items.length || filter.show !== "map" ? "map" : "all", label: null, proposal: null });
    byId("map-said").textContent = items.length ? counted(items.length, "item") + " chosen." : "No item is chosen.";
  }

  function chooseOnMap(item, scrolls) {
    if (scrolls && filter.show === "map" && !picked.has(item)) picked.clear();
    if (!shown.includes(item) && !picked.size) refilter({ show: "all", label: null, proposal: null });
    choose(item, scrolls);
    byId("map-said").textContent = wordsOf(item).slice(0, 80) + ": " + (labelOf(item) === null ? NONE : called(labelOf(item)));
  }

  function startMap() {
    byId("map-box").hidden = !data.map;
    if (!data.map) return;
    byId("map-box").open = innerWidth >= 720;
    const ofFilter = (item) => (filter.proposal !== null ? data.proposal[item] - 1 === filter.proposal : filter.show === "map" && picked.size ? picked.has(item) : hasLabel(item));
    map = makeMap(byId("map"), data.map, {
      order: () => byDoubt.filter((item) => inGroup(item) && hasWords(item)),
      hidden: isHidden,
      current: () => current,
      number: (code) => numberOf(data.classes[code]),
      numberOf: (item) => numberOf(labelOf(item)),
      groups: () => data.proposals.filter(({ group }) => filter.group === null || group === filter.group).map(({ name, items }) => ({ name, members: items.filter((item) => !saidOf(item)) })),
      doubtful: (item) => data.doubtful[item] && !saidOf(item),
      decided: (item) => saidOf(item) !== undefined,
      picked: (item) => picked.has(item),
      faint: (item, code) => (item === null ? filter.label !== null && data.classes[code] !== filter.label : !ofFilter(item)),
      picks: () => picked,
      pick,
      choose: (item) => chooseOnMap(item, true),
      visit: (item) => chooseOnMap(item, false),
      draws: (on) => byId("map-draw").setAttribute("aria-pressed", on),
      told: drawKey,
    });
    byId("map-draw").addEventListener("click", map.draws);
  }

  function drawMap() {
    if (!map) return;
    for (const label of [...data.map.classes.map((code) => data.classes[code]), ...countLabels().keys()]) {
      if (numbers.size < MOST_COLOURED && label !== null && !numbers.has(label)) numbers.set(label, numbers.size);
    }
    map.draw();
  }

  // What the marks mean: the classes on the map, with their numbers of items.
  function drawKey(n, all) {
    const counts = countLabels();
    const entry = (number, label, text, count, does) =>
      make(does ? "button" : "span", { class: "key", onclick: does, "aria-pressed": does ? filter.label === label && label !== null : null }, map.icon(number), text, make("small", { class: "quiet" }, count.toLocaleString("en")));
    const classes = [...counts.keys()].filter((label) => label !== null);
    const coloured = classes.filter((label) => numberOf(label) >= 0);
    const keys = coloured.map((label) => entry(numberOf(label), label, named(label), counts.get(label), () => refilter({ label: filter.label === label ? null : label, show: "all", proposal: null })));
    const others = classes.filter((label) => numberOf(label) < 0).reduce((sum, label) => sum + counts.get(label), 0);
    if (others) keys.push(entry(-1, undefined, "other classes", others));
    if (counts.get(null)) keys.push(entry(null, null, NONE, counts.get(null), () => refilter({ show: "unknown", label: null, proposal: null })));
    byId("map-key").replaceChildren(...keys);
    byId("map-part").textContent = n < all ? n.toLocaleString("en") + " of " + all.toLocaleString("en") + " items are drawn, the least certain ones." : "";
  }

  // -- beside the list ------------------------------------------------------------------------------------------------

  function choice(text, count, pressed, onclick, share) {
    const element = make("button", { class: "choice", "aria-pressed": pressed, onclick }, make("span", {}, named(text)), make("span", {}, count.toLocaleString("en")));
    if (share) element.append(bar(share));
    return element;
  }

  function bar(share) {
    const element = make("i");
    element.style.width = "calc(" + share.toFixed(4) + " * (100% - 1rem))";
    return element;
  }

  function drawSide() {
    const here = byDoubt.filter((item) => inGroup(item) && hasWords(item));
    byId("views").replaceChildren(
      ...VIEWS.filter(([key, , test, order]) => key === "all" || key === filter.show || order().some(test)).map((view) =>
        choice(view[1], ofView(view).length, filter.show === view[0] && filter.proposal === null, () => refilter({ show: view[0], proposal: null }))
      )
    );
    const proposals = data.proposals.map((proposal, place) => [proposal, place]).filter(([proposal]) => filter.group === null || proposal.group === filter.group);
    byId("proposals").hidden = !proposals.length;
    byId("proposal-list").replaceChildren(
      ...proposals.map(([proposal, place]) =>
        choice(proposal.name, ofProposal(proposal).length, filter.proposal === place, () => refilter({ proposal: filter.proposal === place ? null : place, label: null }))
      )
    );
    const counts = new Map();
    for (const item of here) if (labelOf(item) !== null && !isHidden(item)) counts.set(labelOf(item), (counts.get(labelOf(item)) || 0) + 1);
    const words = byId("class-words").value.trim().toLowerCase();
    const largest = Math.max(1, ...counts.values());
    const listed = [...counts].filter(([label]) => called(label).toLowerCase().includes(words)).sort((one, other) => other[1] - one[1] || called(one[0]).localeCompare(called(other[0])));
    byId("class-words").hidden = counts.size < 12;
    byId("class-list").replaceChildren(
      ...listed.slice(0, 300).map(([label, count]) =>
        choice(label, count, filter.label === label && filter.proposal === null, () => refilter({ label: filter.label === label ? null : label, show: "all", proposal: null }), count / largest)
      )
    );
  }

  // What a class, a group of unknown items or a group of rows is, above its items.
  function drawAbout() {
    const about = byId("about");
    about.replaceChildren();
    if (filter.proposal !== null) {
      const proposal = data.proposals[filter.proposal];
      about.append(
        make("div", { class: "head" }, make("h2", {}, named(proposal.name)), make("button", { class: "main", id: "name-group", onclick: () => nameGroup(filter.proposal) }, "Name this group", make("kbd", {}, "g"))),
        make("p", { class: "quiet" }, counted(proposal.items.length, "item") + " that look like one new class: two of them share a class with probability " + percent(proposal.cohesion) + ". Nearest class: ", named(proposal.nearest, "b"), "."),
        examplesOf((examplesByClass.get(data.classes.indexOf(proposal.nearest)) || []).slice(0, 6), ["Examples of ", named(proposal.nearest)])
      );
    } else if (filter.show === "map" && picked.size) {
      const open = openPicks().length;
      const counts = new Map();
      for (const item of picked) if (!isHidden(item)) counts.set(labelOf(item), (counts.get(labelOf(item)) || 0) + 1);
      const listed = [...counts].sort((one, other) => other[1] - one[1]);
      about.append(
        make("div", { class: "head" }, make("h2", {}, counted(picked.size, "item") + " chosen on the map"), make("button", { onclick: () => pick([]) }, "Clear")),
        make("p", { class: "quiet" }, ...listed.slice(0, 8).flatMap(([label, count], place) => [place ? ", " : "", named(label), "\u00a0" + count]), listed.length > 8 ? ", and " + counted(listed.length - 8, "more class", "more classes") : "", ".", open < picked.size ? " " + counted(picked.size - open, "item is", "items are") + " answered already, and stay" + (picked.size - open === 1 ? "s as it is." : " as they are.") : ""),
        make("p", { class: "buttons" }, make("button", { class: "main", id: "one-class", disabled: !open, onclick: classPicks }, "One class for all…", make("kbd", {}, "g")), make("button", { id: "no-class", disabled: !open, onclick: () => decide(openPicks(), "none", openPicks().map(() => null), true) }, "None of these, all"))
      );
    } else if (filter.label !== null) {
      const code = data.classes.indexOf(filter.label);
      about.append(make("div", { class: "head" }, make("h2", {}, named(filter.label)), make("button", { onclick: () => refilter({ label: null }) }, "All classes")));
      const told = (filter.group === null ? data.present : data.present_by_group[filter.group]).find(([k]) => k === code);
      if (told) {
        const parts = ["About " + counted(Number(amount(told[1])), "item") + " expected"];
        if (told[2] !== null) parts.push("present with probability " + percent(told[2]));
        about.append(make("p", { class: "quiet" }, parts.join("; ") + "."));
      }
      about.append(examplesOf((examplesByClass.get(code) || []).slice(0, 6), ["In the catalogue"]));
    } else if (filter.group !== null) {
      const told = data.present_by_group[filter.group].filter(([, , chance]) => chance >= 0.5);
      about.append(
        make("div", { class: "head" }, make("h2", {}, named(data.groups[filter.group])), make("button", { onclick: () => chooseGroup(null) }, "All groups")),
        make("p", { class: "quiet" }, told.length ? "Present: " : "No class is certain.", ...told.slice(0, 12).flatMap(([k, count], place) => [place ? ", " : "", named(data.classes[k]), "\u00a0" + amount(count)]), told.length > 12 ? ", and " + (told.length - 12) + " more" : "", told.length ? "." : "")
      );
      for (const message of data.warnings[filter.group]) about.append(make("p", { class: "alarm" }, message));
    }
    about.hidden = !about.firstChild;
  }

  function drawCounter() {
    const words = { confirmed: "confirmed", corrected: "corrected", none: "none of these", new: "new", bad: "bad", skip: "passed" };
    const counts = {};
    for (const { kind } of decisions.values()) counts[kind] = (counts[kind] || 0) + 1;
    const parts = Object.keys(words).filter((kind) => counts[kind]).map((kind) => counts[kind] + " " + words[kind]);
    byId("counter").textContent = decisions.size ? decisions.size.toLocaleString("en") + " of " + nItems.toLocaleString("en") + " reviewed: " + parts.join(", ") + (saved || stored || live ? "" : " (not kept if you close the page; save them)") : "No items reviewed yet";
    byId("undo").disabled = live ? !data.n_steps : !history.length;
    byId("save").disabled = !decisions.size;
    if (!live) return;
    byId("progress").hidden = false;
    const [looked, right] = byId("progress").querySelectorAll(".meter > *");
    looked.style.width = 100 * data.progress.looked + "%";
    right.style.width = 100 * Math.max(0, data.progress.right - data.progress.looked) + "%";
    byId("progress-said").textContent = data.progress.said;
    byId("progress").classList.toggle("stop", data.progress.may_stop);
  }

  // -- one item -------------------------------------------------------------------------------------------------------

  function drawPanel() {
    const panel = byId("panel");
    const item = current;
    panel.classList.toggle("empty", item < 0);
    if (item < 0) {
      panel.replaceChildren(make("p", { class: "quiet" }, shown.length ? "Choose an item, or press the down key." : "No item."));
      return;
    }
    const label = answerOf(item);
    const second = secondOf(item);
    const decision = decisions.get(item);
    const pieces = [make("button", { id: "close", onclick: () => choose(-1), "aria-label": "Close" }, "×")];
    if (data.pictures) {
      pieces.push(image(data.pictures[item], data.names[item], "large"), make("small", { class: "quiet" }, named(data.names[item])));
    } else {
      pieces.push(make("blockquote", { dir: "auto" }, wordsOf(item)));
      if (data.texts) pieces.push(make("small", { class: "quiet" }, named(data.names[item])));
    }
    if (data.groups) pieces.push(make("div", {}, make("small", { class: "quiet" }, named(data.groups[data.group[item]]))));
    if (isHidden(item)) return drawCheck(panel, pieces);
    if (live && data.reasons[item]) pieces.push(make("p", { class: "reason" }, asked(data.reasons[item])));
    if (decision) pieces.push(make("p", { class: "done" }, { confirmed: "Confirmed: ", corrected: "Corrected to ", none: "You said: ", new: "New class: ", bad: "Bad item", skip: "Passed" }[decision.kind], ["bad", "skip"].includes(decision.kind) ? "" : named(decision.label)));
    const head = make("div", { class: "head" }, named(label, "b"), make("span", {}, percent(certaintyOf(item))));
    pieces.push(make("div", { class: data.doubtful[item] || data.rejected[item] ? "doubt" : "" }, head, meter(certaintyOf(item))));
    if (data.rejected[item]) pieces.push(make("small", { class: "quiet" }, "most like ", named(second), ", " + percent(secondCertaintyOf(item))));
    else if (second !== null) pieces.push(make("small", { class: "quiet" }, "or ", named(second), ", " + percent(secondCertaintyOf(item))));
    pieces.push(make("div", {}, ...coarseOf(item)));
    const does = [make("button", { class: "main", onclick: confirm }, make("span", {}, label === null ? "Confirm: none of these" : "Confirm"), make("kbd", {}, "Enter"))];
    if (label !== null) does.push(make("button", { onclick: sayNone }, make("span", {}, NONE), make("kbd", {}, "x")));
    if (second !== null) does.push(make("button", { onclick: takeSecond }, make("span", {}, named(second)), make("kbd", {}, "r")));
    does.push(
      make("button", { onclick: correct }, make("span", {}, "Correct…"), make("kbd", {}, "c")),
      make("button", { onclick: markNew }, make("span", {}, "New class…"), make("kbd", {}, "n")),
      make("button", { onclick: () => say("bad") }, make("span", {}, "Bad item"), make("kbd", {}, "b")),
      make("button", { onclick: () => say("skip") }, make("span", {}, "Pass"), make("kbd", {}, "p"))
    );
    const proposal = data.proposal[item] - 1;
    if (proposal >= 0) {
      does.push(make("button", { onclick: () => nameGroup(proposal) }, make("span", {}, "Name all of ", named(data.proposals[proposal].name)), make("kbd", {}, "g")));
    }
    if (decision) does.push(make("button", { onclick: () => decide([item], "clear", [null]) }, make("span", {}, "Clear")));
    pieces.push(make("div", { class: "does" }, ...does), ...why(item));
    const nearest = data.nearest[item];
    const others = (code) => (examplesByClass.get(code) || []).filter((place) => place !== nearest).slice(0, nearest === undefined ? 3 : 2);
    const mine = others(data.label[item]);
    pieces.push(examplesOf(nearest === undefined ? mine : [nearest, ...mine], ["Examples of ", named(classOf(item))]));
    if (second !== null && label !== null) pieces.push(examplesOf(others(data.second[item]), ["Examples of ", named(second)]));
    panel.replaceChildren(...pieces.filter((piece) => piece !== ""));
    panel.scrollTop = 0;
  }

  // An item that is asked to find out how many labels are wrong: nothing is suggested.
  function drawCheck(panel, pieces) {
    pieces.push(
      make("p", { class: "reason" }, "A check: this item was drawn at random, and its label is hidden. Your answer tells how many of the other labels are wrong."),
      make("div", { class: "does" },
        make("button", { class: "main", onclick: correct }, make("span", {}, "Which class is it?…"), make("kbd", {}, "Enter")),
        make("button", { onclick: sayNone }, make("span", {}, NONE), make("kbd", {}, "x")),
        make("button", { onclick: markNew }, make("span", {}, "New class…"), make("kbd", {}, "n")),
        make("button", { onclick: () => say("bad") }, make("span", {}, "Bad item"), make("kbd", {}, "b")),
        make("button", { onclick: () => say("skip") }, make("span", {}, "Pass"), make("kbd", {}, "p"))
      )
    );
    panel.replaceChildren(...pieces);
    panel.scrollTop = 0;
  }

  // Why a question is asked.
  function asked([worth, speaksFor]) {
    if (!speaksFor) return "Asked because this label is wrong with a chance of " + percent(Math.min(worth, 1)) + ".";
    const same = counted(speaksFor, "other item") + " probably " + (speaksFor === 1 ? "has" : "have") + " the same class";
    return "Asked because " + same + ". Your answer is expected to correct " + (worth < 9.5 ? worth.toFixed(1) : Math.round(worth)) + " labels, this one included.";
  }

  // Explanations of a live page come one by one.
  async function explain(item) {
    const number = data.number;
    const answer = await fetch("why/" + item).catch(() => null);
    if (answer === null || !answer.ok) return;
    const { why, near } = await answer.json();
    if (data.number !== number) return;
    for (const [label, distance, content, name] of near) {
      if (content !== null) data.examples.push([data.classes.indexOf(label), content, name]);
      why.push([content === null ? -1 : data.examples.length - 1, label, distance]);
    }
    data.why[item] = why;
    if (current === item) drawPanel();
  }

  // Why an item has its label: what it would be alone, what the batch adds, and the nearest examples.
  function why(item) {
    const said = data.why[item];
    if (said === undefined && live && data.explains) explain(item);
    if (!said || !said.length) return [];
    const label = classOf(item);
    const [alone, rival, aloneP, fromItem, fromBatch, mine, theirs, nInBatch, ...near] = said;
    const items = (count) => (count < 0.5 ? "none" : Math.round(count).toLocaleString("en"));
    const times = (nats) => (Math.abs(nats) > 9 ? "more than 1,000" : Math.exp(Math.abs(nats)) < 10 ? Math.exp(Math.abs(nats)).toFixed(1) : Math.round(Math.exp(Math.abs(nats))).toLocaleString("en"));
    const name = (code) => named(data.classes[code], "b");
    const lines = data.rejected[item] ? [make("p", {}, "It looks like none of the classes, " + percent(data.unknown[item]) + "; ", named(label, "b"), " fits it best.")] : [];
    lines.push(make("p", {}, "Alone it would be ", ...(data.classes[alone] === label ? ["the same"] : [name(alone)]), ", " + percent(aloneP) + "."));
    if (rival >= 0) {
      lines.push(
        make("p", {}, "Of the other " + (nInBatch - 1).toLocaleString("en") + " items of the batch, " + items(mine) + " are expected to be ", named(label, "b"), ", " + items(theirs) + " to be ", name(rival), "."),
        make("p", {}, "The item itself favours ", fromItem >= 0 ? named(label, "b") : name(rival), " by a factor of " + times(fromItem) + "; the batch adds a factor of " + times(fromBatch) + " for ", fromBatch >= 0 ? named(label, "b") : name(rival), ".")
      );
    }
    if (near.length) {
      lines.push(make("p", {}, "Nearest examples: ", ...near.flatMap(([place, of], at) => [at ? ", " : "", named(of, "b"), data.pictures || place < 0 ? "" : " (“" + data.examples[place][1] + "”)"]), "."));
      if (data.pictures) lines.push(make("div", { class: "strip" }, ...near.filter(([place]) => place >= 0).map(([place]) => image(data.examples[place][1], data.examples[place][2]))));
    }
    const told = make("details", { class: "why", ontoggle: () => (whyOpen = told.open) }, make("summary", {}, "Why this label?"), ...lines);
    told.open = whyOpen;
    return [told];
  }

  async function answer(said, label) {
    const item = current;
    if (item < 0) return;
    const place = shown.indexOf(item);
    if (!(await decide([item], said, [label]))) return;
    goOn(item, place);
  }

  // The next item: of a live page the next question, elsewhere that after the one that was answered.
  function goOn(item, place) {
    if (live && filter.show === "first" && filter.proposal === null) return choose(shown.length ? shown[0] : -1);
    const here = shown.indexOf(item);
    if (shown.length) choose(shown[Math.min(here < 0 ? place : here + 1, shown.length - 1)]);
  }

  const say = (said) => answer(said, null);
  const sayNone = () => say("none");

  function confirm() {
    if (current < 0) return move(0);
    if (isHidden(current)) return correct();
    const label = saidOf(current) ? saidOf(current).label : answerOf(current);
    return answer(label === null ? "none" : "class", label);
  }

  function takeSecond() {
    if (current < 0 || isHidden(current) || secondOf(current) === null) return;
    answer("class", secondOf(current));
  }

  function correct() {
    if (current >= 0) ask("Which class is it?", false, current, (label) => answer(inCatalogue.has(label) ? "class" : "new", label));
  }

  function markNew() {
    if (current >= 0) ask("A class that the catalogue does not have. What is it called?", true, current, (label) => answer(inCatalogue.has(label) ? "class" : "new", label));
  }

  function nameGroup(place) {
    const items = data.proposals[place].items.filter((item) => !decisions.has(item));
    oneClass(items, data.proposals[place].name + ", " + counted(items.length, "item") + ". What is the class called?", true);
  }

  // One decision about several items; those that a person answered stay as they are.
  function oneClass(items, question, newOnly) {
    if (items.length) ask(question, newOnly, items[0], (label) => decide(items, inCatalogue.has(label) ? "class" : "new", items.map(() => label), true));
  }

  const openPicks = () => [...picked].filter((item) => !decisions.has(item));
  const classPicks = () => oneClass(openPicks(), counted(openPicks().length, "item") + " chosen on the map. Which class are they?", false);

  // -- asking for a class ---------------------------------------------------------------------------------------------

  let asking = null;
  let options = [];
  let option = 0;

  // Classes that match the words, the best first: at the beginning, at the beginning of a word, anywhere, in the name for files.
  function suggestions(words) {
    const named = new Set([...decisions.values()].filter(({ kind }) => kind === "new").map(({ label }) => label));
    const known = asking.newOnly ? [...named] : [...new Set([...asking.first, ...named, ...data.classes])];
    const wanted = words.trim().toLowerCase();
    const found = known
      .map((label, place) => {
        const text = called(label).toLowerCase();
        const at = text.indexOf(wanted);
        const rank = at < 0 ? (label.toLowerCase().includes(wanted) ? 4 : -1) : text === wanted ? 0 : at === 0 ? 1 : /[\s_\-/.]/.test(text[at - 1]) ? 2 : 3;
        return [rank, place, label];
      })
      .filter(([rank]) => rank >= 0)
      .sort((one, other) => one[0] - other[0] || one[1] - other[1])
      .slice(0, MOST_OPTIONS)
      .map(([, , label]) => ({ label, fresh: false }));
    const exact = data.classes.find((label) => called(label).toLowerCase() === wanted || label.toLowerCase() === wanted);
    if (asking.newOnly && exact !== undefined) return [{ label: exact, fresh: false }];
    if (wanted !== "" && exact === undefined && !found.some(({ label }) => label.toLowerCase() === wanted)) {
      found.push({ label: words.trim(), fresh: true });
    }
    return found;
  }

  function ask(question, newOnly, item, answer) {
    const labels = new Set();
    if (secondOf(item) !== null && !isHidden(item)) labels.add(secondOf(item));
    for (const [code] of data.present) labels.add(data.classes[code]);
    asking = { newOnly, first: [...labels], answer };
    byId("question").textContent = question;
    byId("words").value = "";
    byId("ask").showModal();
    drawOptions();
  }

  function drawOptions() {
    options = suggestions(byId("words").value);
    option = 0;
    byId("options").replaceChildren(
      ...options.map(({ label, fresh }, place) =>
        make(
          "li",
          { role: "option", id: "option-" + place, "aria-selected": place === 0, onclick: () => answered(place) },
          fresh ? make("span", {}, "New class ", make("b", {}, named(label))) : make("span", {}, named(label))
        )
      )
    );
    pointAt(0);
  }

  function pointAt(place) {
    if (!options.length) return byId("words").removeAttribute("aria-activedescendant");
    option = (place + options.length) % options.length;
    [...byId("options").children].forEach((element, at) => element.setAttribute("aria-selected", at === option));
    byId("words").setAttribute("aria-activedescendant", "option-" + option);
  }

  function answered(place) {
    if (!options.length) return;
    const { label } = options[place];
    byId("ask").close();
    asking.answer(label);
  }

  // -- keys and buttons -----------------------------------------------------------------------------------------------

  function onKey(event) {
    if (byId("ask").open || byId("keys").open || byId("sure").open) return;
    const writing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape") {
      if (writing) event.target.blur();
      else choose(-1);
      return;
    }
    if (writing) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "z") {
      event.preventDefault();
      return undo();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A button that has the focus keeps its own Enter.
    if (event.key === "Enter" && event.target.closest("button, summary, a")) return;
    if (document.documentElement.dataset.finished) return;
    const does = {
      ArrowDown: () => move(perRow()),
      ArrowUp: () => move(-perRow()),
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      j: () => move(1),
      k: () => move(-1),
      Enter: confirm,
      r: takeSecond,
      x: sayNone,
      c: correct,
      n: markNew,
      m: () => {
        if (!map) return;
        byId("map-box").open = true;
        byId("map").focus();
      },
      g: () => {
        if (filter.show === "map" && filter.proposal === null) return classPicks();
        const place = filter.proposal !== null ? filter.proposal : current >= 0 ? data.proposal[current] - 1 : -1;
        if (place >= 0) nameGroup(place);
      },
      b: () => say("bad"),
      p: () => say("skip"),
      a: accept,
      u: undo,
      s: () => decisions.size && save(),
      "/": () => byId("search").focus(),
      "?": () => byId("keys").showModal(),
    }[event.key];
    if (does === undefined) return;
    event.preventDefault();
    does();
  }

  function chooseGroup(place) {
    byId("group").value = place === null ? "" : String(place);
    refilter({ group: place, proposal: null, label: null });
  }

  function listen() {
    document.addEventListener("keydown", onKey);
    // A button that was clicked gives up the focus, so that Enter confirms the next item.
    for (const [id, does] of [["undo", undo], ["save", save]]) {
      byId(id).addEventListener("click", (event) => {
        if (event.detail > 0) event.currentTarget.blur();
        does();
      });
    }
    byId("accept").addEventListener("click", accept);
    byId("sure-no").addEventListener("click", () => byId("sure").close());
    if (live) {
      byId("save").firstChild.textContent = "Finish";
      byId("save").querySelector(".wide").hidden = true;
      document.addEventListener("visibilitychange", look);
      window.addEventListener("focus", look);
    }
    byId("help-open").addEventListener("click", () => byId("keys").showModal());
    byId("filters-toggle").addEventListener("click", () => byId("side").classList.toggle("open"));
    // On a phone filters lie above the list; once one is chosen they only hide it.
    byId("side").addEventListener("click", (event) => {
      if (event.target.closest("button")) byId("side").classList.remove("open");
    });
    byId("search").addEventListener("input", () => search(byId("search").value));
    byId("class-words").addEventListener("input", drawSide);
    byId("more").firstElementChild.addEventListener("click", drawMore);
    byId("words").addEventListener("input", drawOptions);
    byId("words").addEventListener("keydown", (event) => {
      const does = { ArrowDown: () => pointAt(option + 1), ArrowUp: () => pointAt(option - 1), Enter: () => answered(option) }[event.key];
      if (does === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      does();
    });
    if (data.groups) {
      // On a phone, or with many groups, the table would push the items out of sight.
      const table = document.querySelector("table.groups");
      if (table) table.closest("details").open = innerWidth >= 720 && data.groups.length <= 12;
      byId("group").append(make("option", { value: "" }, "All " + data.groups.length.toLocaleString("en")), ...data.groups.map((name, place) => make("option", { value: place }, name)));
      byId("group").addEventListener("change", () => chooseGroup(byId("group").value === "" ? null : Number(byId("group").value)));
      for (const button of document.querySelectorAll("button[data-group]")) {
        button.addEventListener("click", () => {
          chooseGroup(Number(button.dataset.group));
          byId("work").scrollIntoView();
        });
      }
    }
    if ("IntersectionObserver" in window) {
      new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && drawn < shown.length && drawMore(), { rootMargin: "600px" }).observe(byId("more"));
    }
    window.addEventListener("beforeunload", (event) => {
      if (!saved && !stored) event.preventDefault();
    });
  }

  ready();
  if (!live) restore();
  listen();
  startMap();
  byId("groups-filter").hidden = !data.groups;
  byId("list").className = data.pictures ? "pictures" : "lines";
  filter.show = VIEWS.find(([, , test, order]) => order().some(test))[0];
  drawCounter();
  refilter({});
  if (live && shown.length) choose(shown[0]);
  document.documentElement.dataset.ready = "yes";
})();
