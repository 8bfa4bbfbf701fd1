// The map of a batch, as SVG: a click chooses an item, a line drawn around several chooses these.

import { mark, shape } from "./colours.js";

/** @typedef {import("./state.js").Places} Places */
/** @typedef {[number, number]} Point */
/** @typedef {{ item: number, point: Point }} Dot */
/** @typedef {{ x: number, y: number, half: number }} Said where a name is, and half its width */

/**
 * What the map asks the page about items, and tells it.
 * @typedef {object} Shown
 * @property {() => number[]} order items to draw, the least certain first
 * @property {(code: number) => string} className of an example
 * @property {(item: number) => string | null} labelOf
 * @property {() => { name: string, members: number[] }[]} groups groups without a name
 * @property {(item: number) => string} styleOf doubtful, decided, picked, faint
 * @property {(code: number) => boolean} isFaint of an example
 * @property {() => number} current
 * @property {Set<number>} picks
 * @property {(items: number[]) => void} pick
 * @property {(item: number) => void} choose
 * @property {(item: number) => void} visit
 * @property {(on: boolean) => void} draws whether a finger draws a line
 * @property {(drawn: number, all: number) => void} told
 */

// Items drawn, pixels around them, how near a pointer must be, and the least distance between corners of a line.
const MOST_DRAWN = 3000;
const MARGIN = 20;
const NEAR = /** @type {Record<string, number>} */ ({ touch: 24, mouse: 12, pen: 16 });
const STEP_OF_LINE = 3;
// Letters of the name of a group, and pixels of half a letter and of a line.
const MOST_NAME = 28;
const HALF_LETTER = 4;
const LINE = 14;
// A step to an item that lies aside counts this many times.
const ASIDE = 2;

/** @type {(one: Point, other: Point) => number} */
const distance = (one, other) => Math.hypot(one[0] - other[0], one[1] - other[1]);

/** @param {Point} point */
const movedTo = ([x, y]) => "translate(" + x.toFixed(1) + "," + y.toFixed(1) + ")";

/**
 * @param {Point} point
 * @param {Point[]} corners
 */
function isInside([x, y], corners) {
  let inside = false;
  corners.forEach(([ax, ay], place) => {
    const [bx, by] = corners[(place || corners.length) - 1];
    if (ay > y !== by > y && x < ax + ((bx - ax) * (y - ay)) / (by - ay)) inside = !inside;
  });
  return inside;
}

/**
 * A function from places on the map to pixels: one unit is as long across as down, and the middle is that of all items.
 * @param {Point[]} items
 * @param {number} width
 * @param {number} height
 * @returns {(at: Point) => Point}
 */
function fitted(items, width, height) {
  /** @type {(axis: 0 | 1) => [number, number]} */
  const ends = (axis) => {
    const along = items.map((at) => at[axis]);
    return [along.reduce((a, b) => Math.min(a, b)), along.reduce((a, b) => Math.max(a, b))];
  };
  const [left, right] = ends(0);
  const [bottom, top] = ends(1);
  const across = (width - 2 * MARGIN) / Math.max(right - left, 1e-6);
  const down = (height - 2 * MARGIN) / Math.max(top - bottom, 1e-6);
  const scale = Math.min(across, down);
  return ([x, y]) => [width / 2 + scale * (x - (left + right) / 2), height / 2 - scale * (y - (bottom + top) / 2)];
}

/**
 * Draw the map, and listen to pointers and keys.
 * @param {SVGSVGElement} svg
 * @param {Places} places
 * @param {Shown} page
 */
export function makeMap(svg, places, page) {
  /** @type {Dot[]} */
  let dots = [];
  let cursor = -1;
  /** @type {{ corners: Point[], draws: boolean } | null} */
  let line = null;
  let drawing = false;

  function draw() {
    if (!svg.clientWidth || !places.items.length) return;
    const place = fitted(places.items, svg.clientWidth, svg.clientHeight);
    svg.setAttribute("viewBox", "0 0 " + svg.clientWidth + " " + svg.clientHeight);
    const all = page.order();
    dots = all.slice(0, MOST_DRAWN).map((item) => ({ item, point: place(places.items[item]) }));
    const examples = shape("g", { class: "examples" });
    const groups = shape("g", { class: "groups" });
    const points = shape("g", { class: "points" });
    const over = shape("g", { class: "over" });
    places.examples.forEach((example, row) => {
      const code = places.codes[row];
      const style = page.isFaint(code) ? "faint" : "";
      examples.append(mark(page.className(code), style, { transform: movedTo(place(example)) + " scale(.6)" }));
    });
    /** @type {Said[]} */
    const said = [];
    const bySize = [...page.groups()].sort((one, other) => other.members.length - one.members.length);
    for (const group of bySize) drawGroup(group, groups, over, said);
    // The least certain lie on top.
    for (const { item, point } of [...dots].reverse()) {
      points.append(mark(page.labelOf(item), page.styleOf(item), { transform: movedTo(point), "data-item": item }));
    }
    svg.replaceChildren(examples, groups, points, over);
    ring();
    page.told(dots.length, all.length);
  }

  /**
   * Lines from the middle of a group to its items, and its name above them, unless it would lie on another name.
   * @param {{ name: string, members: number[] }} group
   * @param {Element} lines
   * @param {Element} over
   * @param {Said[]} others names that are there
   */
  function drawGroup({ name, members }, lines, over, others) {
    const points = dots.filter(({ item }) => members.includes(item)).map(({ point }) => point);
    if (!points.length) return;
    /** @type {(axis: 0 | 1) => number} */
    const median = (axis) => points.map((point) => point[axis]).sort((one, other) => one - other)[points.length >> 1];
    const middle = [median(0), median(1)];
    lines.append(...points.map((point) => shape("path", { d: "M" + middle + "L" + point })));
    const top = Math.min(...points.map(([, y]) => y));
    const said = name.length > MOST_NAME ? name.slice(0, MOST_NAME - 1) + "…" : name;
    const half = HALF_LETTER * said.length;
    const x = Math.min(Math.max(middle[0], half), svg.clientWidth - half);
    const y = Math.max(top - 9, 12);
    if (others.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < LINE)) return;
    others.push({ x, y, half });
    over.append(shape("text", { x, y, "text-anchor": "middle" }, said));
  }

  /** A ring around the item that is chosen. */
  function ring() {
    svg.querySelector(".ring")?.remove();
    const found = dots.find(({ item }) => item === page.current());
    if (found === undefined) return;
    cursor = found.item;
    svg.lastElementChild?.append(shape("circle", { class: "ring", cx: found.point[0], cy: found.point[1], r: 9 }));
  }

  // -- pointers -----------------------------------------------------------------------------------------------------

  /**
   * @param {PointerEvent} event
   * @returns {Point}
   */
  function pointer(event) {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /**
   * @param {Point} point
   * @returns {Dot | undefined}
   */
  function nearest(point) {
    let best = dots[0];
    for (const dot of dots) {
      if (distance(dot.point, point) < distance(best.point, point)) best = dot;
    }
    return best;
  }

  /** @param {PointerEvent} event */
  function down(event) {
    if (event.button !== 0) return;
    // A finger scrolls the page, unless it was told to draw.
    line = { corners: [pointer(event)], draws: event.pointerType !== "touch" || drawing };
    if (line.draws) svg.setPointerCapture(event.pointerId);
  }

  /** @param {PointerEvent} event */
  function along(event) {
    if (line === null || !line.draws) return;
    const here = pointer(event);
    if (distance(here, line.corners[line.corners.length - 1]) < STEP_OF_LINE) return;
    line.corners.push(here);
    svg.querySelector(".line")?.remove();
    svg.lastElementChild?.append(shape("path", { class: "line", d: "M" + line.corners.join("L") + "z" }));
  }

  /** @param {PointerEvent} event */
  function up(event) {
    if (line === null) return;
    const { corners, draws } = line;
    end();
    if (draws && corners.length > 3) {
      setDrawing(false);
      const inside = dots.filter(({ point }) => isInside(point, corners)).map(({ item }) => item);
      page.pick(event.shiftKey ? [...new Set([...page.picks, ...inside])] : inside);
      return;
    }
    const found = nearest(corners[0]);
    const reach = NEAR[event.pointerType] ?? NEAR.mouse;
    if (found !== undefined && distance(found.point, corners[0]) <= reach) page.choose(found.item);
  }

  function end() {
    line = null;
    svg.querySelector(".line")?.remove();
  }

  /** @param {boolean} on */
  function setDrawing(on) {
    drawing = on;
    svg.classList.toggle("drawing", on);
    page.draws(on);
  }

  // -- keys ---------------------------------------------------------------------------------------------------------

  /**
   * From the item to the nearest one in a direction.
   * @param {number} x
   * @param {number} y
   */
  function step(x, y) {
    const from = dots.find(({ item }) => item === cursor) ?? nearest([svg.clientWidth / 2, svg.clientHeight / 2]);
    if (from === undefined) return;
    let best = from.item === cursor ? undefined : from;
    let least = Infinity;
    for (const dot of best === undefined ? dots : []) {
      const dx = dot.point[0] - from.point[0];
      const dy = dot.point[1] - from.point[1];
      const ahead = dx * x + dy * y;
      const far = ahead + ASIDE * Math.abs(dx * y + dy * x);
      if (ahead > 0.5 && far < least) {
        best = dot;
        least = far;
      }
    }
    if (best === undefined) return;
    cursor = best.item;
    page.visit(cursor);
  }

  /**
   * One item more, or one less, around the one that is chosen.
   * @param {boolean} more
   */
  function around(more) {
    const from = dots.find(({ item }) => item === cursor);
    if (from === undefined) return;
    const near = [...dots].sort((one, other) => distance(one.point, from.point) - distance(other.point, from.point));
    const items = near.map(({ item }) => item);
    if (more) page.pick([...page.picks, ...items.filter((item) => !page.picks.has(item)).slice(0, 1)]);
    else page.pick(items.filter((item) => page.picks.has(item)).slice(0, -1));
  }

  function toggle() {
    if (cursor < 0) return;
    const picks = [...page.picks];
    page.pick(page.picks.has(cursor) ? picks.filter((item) => item !== cursor) : [...picks, cursor]);
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowLeft: () => step(-1, 0),
      ArrowRight: () => step(1, 0),
      ArrowUp: () => step(0, -1),
      ArrowDown: () => step(0, 1),
      " ": toggle,
      "+": () => around(true),
      "=": () => around(true),
      "-": () => around(false),
      Escape: () => (page.picks.size ? page.pick([]) : svg.blur()),
    };
    const does = keys[event.key];
    if (does === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  }

  svg.addEventListener("pointerdown", down);
  svg.addEventListener("pointermove", along);
  svg.addEventListener("pointerup", up);
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("keydown", key);
  if ("ResizeObserver" in window) new ResizeObserver(draw).observe(svg);
  return { draw, ring, toggleDrawing: () => setDrawing(!drawing) };
}
