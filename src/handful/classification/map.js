// The map of a batch, as SVG: a click chooses an item, a line drawn around several chooses these. Names reach it through
// textContent, never as markup.
"use strict";
function makeMap(svg, { items, examples, codes }, page) {
  // Items drawn, pixels around them, and how near a pointer must be.
  const MOST = 3000;
  const MARGIN = 20;
  const NEAR = { touch: 24, mouse: 12, pen: 16 };
  const MARKS = [
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.2L5 3.8H-5z",
    "M0-5.6L5.6 0 0 5.6-5.6 0z",
  ];
  const CROSS = "M-4-4L4 4M4-4L-4 4";
  const N_COLOURS = 7;
  let drawn = [];
  let cursor = -1;
  let line = null;
  let drawing = false;

  function shape(tag, properties, text) {
    const element = document.createElementNS(svg.namespaceURI, tag);
    for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  // The mark of a class by its number; -1 for a class without a colour, null for none of the classes.
  function mark(number, more, properties) {
    const style = number === null ? "cross" : number < 0 ? "other" : "c" + (number % N_COLOURS);
    return shape("path", { class: style + " " + more, d: number === null ? CROSS : MARKS[Math.max(number, 0) % MARKS.length], ...properties });
  }

  // The mark by itself.
  function icon(number) {
    const element = shape("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" });
    element.append(mark(number, "", {}));
    return element;
  }

  // One unit is as long across as down. Between pixels and units: the middle of the map is the middle of all items.
  let place = () => [0, 0];
  function fit() {
    const width = svg.clientWidth;
    const height = svg.clientHeight;
    const [low, high] = [Math.min, Math.max].map((most) => [0, 1].map((axis) => items.reduce((found, at) => most(found, at[axis]), items[0][axis])));
    const span = [0, 1].map((axis) => Math.max(high[axis] - low[axis], 1e-6));
    const scale = Math.min((width - 2 * MARGIN) / span[0], (height - 2 * MARGIN) / span[1]);
    place = ([x, y]) => [width / 2 + scale * (x - (low[0] + high[0]) / 2), height / 2 - scale * (y - (low[1] + high[1]) / 2)];
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  }

  const at = (point) => "translate(" + point.map((number) => number.toFixed(1)) + ")";

  function draw() {
    if (!svg.clientWidth || !items.length) return;
    fit();
    const shown = page.order().filter((item) => !page.hidden(item));
    drawn = shown.slice(0, MOST).map((item) => ({ item, point: place(items[item]) }));
    const where = new Map(drawn.map(({ item, point }) => [item, point]));
    const layers = [shape("g", { class: "examples" }), shape("g", { class: "groups" }), shape("g", { class: "points" }), shape("g", { class: "over" })];
    examples.forEach((example, row) => {
      const number = page.number(codes[row]);
      if (number >= 0) layers[0].append(mark(number, page.faint(null, codes[row]) ? "faint" : "", { transform: at(place(example)) + " scale(.6)" }));
    });
    for (const { name, members } of page.groups()) {
      const points = members.filter((item) => where.has(item)).map((item) => where.get(item));
      if (!points.length) continue;
      const middle = [0, 1].map((axis) => points.map((point) => point[axis]).sort((one, other) => one - other)[points.length >> 1]);
      layers[1].append(...points.map((point) => shape("path", { d: "M" + middle + "L" + point })));
      const top = Math.min(...points.map(([, y]) => y));
      const said = name.length > 28 ? name.slice(0, 27) + "…" : name;
      const half = 4 * said.length;
      layers[3].append(shape("text", { x: Math.min(Math.max(middle[0], half), svg.clientWidth - half), y: Math.max(top - 9, 12), "text-anchor": "middle" }, said));
    }
    // The least certain lie on top.
    for (const { item, point } of [...drawn].reverse()) {
      const more = ["doubtful", "decided", "picked", "faint"].filter((what) => page[what](item)).join(" ");
      layers[2].append(mark(page.numberOf(item), more, { transform: at(point), "data-item": item }));
    }
    svg.replaceChildren(...layers);
    point();
    page.told(drawn.length, shown.length);
  }

  // A ring around the item that is chosen.
  function point() {
    svg.querySelector(".ring")?.remove();
    const found = drawn.find(({ item }) => item === page.current());
    if (!found || !svg.lastChild) return;
    cursor = found.item;
    svg.lastChild.append(shape("circle", { class: "ring", cx: found.point[0], cy: found.point[1], r: 9 }));
  }

  // -- pointers -------------------------------------------------------------------------------------------------------

  const distance = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);

  function pointer(event) {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function isInside([x, y], corners) {
    let inside = false;
    corners.forEach(([ax, ay], place) => {
      const [bx, by] = corners[(place || corners.length) - 1];
      if (ay > y !== by > y && x < ax + ((bx - ax) * (y - ay)) / (by - ay)) inside = !inside;
    });
    return inside;
  }

  const nearest = (point) => drawn.reduce((best, one) => (best === null || distance(one.point, point) < distance(best.point, point) ? one : best), null);

  function down(event) {
    if (event.button !== 0) return;
    line = [pointer(event)];
    // A finger scrolls the page, unless it was told to draw.
    line.draws = event.pointerType !== "touch" || drawing;
    if (line.draws) svg.setPointerCapture(event.pointerId);
  }

  function along(event) {
    if (line === null || !line.draws) return;
    const here = pointer(event);
    if (distance(here, line.at(-1)) < 3) return;
    line.push(here);
    svg.querySelector(".line")?.remove();
    svg.lastChild.append(shape("path", { class: "line", d: "M" + line.join("L") + "z" }));
  }

  function up(event) {
    if (line === null) return;
    const corners = line;
    end();
    if (corners.draws && corners.length > 3) {
      draws(false);
      const inside = drawn.filter(({ point }) => isInside(point, corners)).map(({ item }) => item);
      return page.pick(event.shiftKey ? [...new Set([...page.picks(), ...inside])] : inside);
    }
    const found = nearest(corners[0]);
    if (found && distance(found.point, corners[0]) <= (NEAR[event.pointerType] || NEAR.mouse)) page.choose(found.item);
  }

  function end() {
    line = null;
    svg.querySelector(".line")?.remove();
  }

  function draws(on) {
    drawing = on;
    svg.classList.toggle("drawing", on);
    page.draws(on);
  }

  // -- keys -----------------------------------------------------------------------------------------------------------

  // From the item to the nearest one in a direction: what lies aside counts as farther.
  function step(x, y) {
    const from = drawn.find(({ item }) => item === cursor) || nearest([svg.clientWidth / 2, svg.clientHeight / 2]);
    if (!from) return;
    let [best, least] = [from.item === cursor ? null : from, Infinity];
    for (const one of best ? [] : drawn) {
      const [dx, dy] = [one.point[0] - from.point[0], one.point[1] - from.point[1]];
      const ahead = dx * x + dy * y;
      const far = ahead + 2 * Math.abs(dx * y + dy * x);
      if (ahead > 0.5 && far < least) [best, least] = [one, far];
    }
    if (best === null) return;
    cursor = best.item;
    page.visit(cursor);
  }

  // One item more, or one less, around the one that is chosen.
  function around(more) {
    const from = drawn.find(({ item }) => item === cursor);
    if (!from) return;
    const picks = page.picks();
    const by = drawn.map(({ item, point }) => [distance(point, from.point), item]).sort((one, other) => one[0] - other[0]).map(([, item]) => item);
    if (more) page.pick([...picks, ...by.filter((item) => !picks.has(item)).slice(0, 1)]);
    else page.pick(by.filter((item) => picks.has(item)).slice(0, -1));
  }

  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const picks = page.picks();
    const does = {
      ArrowLeft: () => step(-1, 0),
      ArrowRight: () => step(1, 0),
      ArrowUp: () => step(0, -1),
      ArrowDown: () => step(0, 1),
      " ": () => cursor >= 0 && page.pick(picks.has(cursor) ? [...picks].filter((item) => item !== cursor) : [...picks, cursor]),
      "+": () => around(true),
      "=": () => around(true),
      "-": () => around(false),
      Escape: () => (picks.size ? page.pick([]) : svg.blur()),
    }[event.key];
    if (does === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  }

  for (const [name, does] of Object.entries({ pointerdown: down, pointermove: along, pointerup: up, pointercancel: end, keydown: key })) svg.addEventListener(name, does);
  if ("ResizeObserver" in window) new ResizeObserver(draw).observe(svg);
  return { draw, point, draws: () => draws(!drawing), icon };
}
