// Draws the part of a history that is in view as SVG.

const SVG = "http://www.w3.org/2000/svg";
// The width of a character of a label, and the most arrows that are drawn at once.
const CHARACTER = 6.7;
const MOST_ARROWS = 400;

function svg(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(element);
  return element;
}

// The text, or its beginning, in a width; empty if only a letter or two would fit.
function fitted(text, width) {
  const most = Math.floor(width / CHARACTER);
  if (text.length <= most) return text;
  return most >= 4 ? `${text.slice(0, most - 1)}…` : "";
}

// `view` has: history, layout, scale, from, to, width, gutter, selected, dimmed (a set of names), arrows ([from, to,
// key, kind]) and an id that is unique on the page.
function draw(root, view) {
  root.replaceChildren();
  const { layout, width, gutter } = view;
  root.setAttribute("width", width);
  root.setAttribute("height", layout.height);
  root.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
  const defs = svg("defs", {}, root);
  const clip = svg("clipPath", { id: `${view.id}-clip` }, defs);
  svg("rect", { x: gutter, y: 0, width: Math.max(width - gutter, 1), height: layout.height }, clip);
  for (const kind of ["reads", "overwrites"]) {
    const marker = svg("marker", {
      id: `${view.id}-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto",
    }, defs);
    svg("path", { d: "M0 0L8 4L0 8z", class: `head ${kind}` }, marker);
  }
  const scene = svg("g", { "clip-path": `url(#${view.id}-clip)` }, root);
  const x = (time) => gutter + ((view.scale.at(time) - view.from) / (view.to - view.from)) * (width - gutter - 6) + 3;
  const pen = { view, x, scene, left: gutter, right: width };
  drawLanes(pen);
  drawAxis(pen);
  drawBands(pen);
  if (view.history.when) drawWhen(pen, root);
  for (const lane of layout.lanes) {
    for (const operation of lane.operations) drawOperation(pen, operation);
    for (const transaction of lane.transactions) drawTransaction(pen, transaction);
    drawEvents(pen, lane);
  }
  drawArrows(pen);
  drawNames(root, view);
}

function drawLanes({ view, scene, left, right }) {
  view.layout.lanes.forEach((lane, n) => {
    svg("rect", { x: left, y: lane.top - 2, width: right - left, height: lane.height - 2, class: `lane ${n % 2 ? "odd" : ""}` }, scene);
  });
}

function drawNames(root, view) {
  for (const lane of view.layout.lanes) {
    const name = view.gutter < 60 ? lane.short : lane.name;
    const middle = lane.top + (lane.height - SIZES.gap) / 2 + 4;
    svg("text", { x: view.gutter - 6, y: middle, class: "name", "text-anchor": "end" }, root).textContent =
      fitted(name, view.gutter - 4) || name.slice(0, 6);
  }
}

function drawAxis({ view, x, scene, left, right }) {
  for (const [time, label] of ticks(view.scale, view.from, view.to, right - left, 92)) {
    svg("line", { x1: x(time), x2: x(time), y1: 16, y2: view.layout.height, class: "tick" }, scene);
    if (x(time) + label.length * CHARACTER < right) {
      svg("text", { x: x(time) + 3, y: 11, class: "time" }, scene).textContent = label;
    }
  }
}

// What concerns the whole cluster: recoveries and faults as bands, the acts of the run as lines.
function drawBands({ view, x, scene, left, right }) {
  let labelled = -Infinity;
  for (const event of view.history.events) {
    if (event.client !== null || event.machine !== null) continue;
    const [begin, end] = [x(event.at), x(event.until ?? event.at)];
    if (end < left || begin > right) continue;
    const group = svg("g", { "data-name": event.name, class: `event cluster ${event.kind}` }, scene);
    svg("title", {}, group).textContent = event.text;
    const height = view.layout.height - 16;
    if (event.kind === "act") svg("line", { x1: begin, x2: begin, y1: 14, y2: view.layout.height }, group);
    else svg("rect", { x: begin, y: 16, width: Math.max(end - begin, 1.5), height }, group);
    const words = fitted(event.text, 110);
    const fits = begin >= left && begin + words.length * CHARACTER < right;
    if (fits && begin - labelled > 118 && words) {
      svg("text", { x: begin + 3, y: 23, class: "event-text" }, group).textContent = words;
      labelled = begin;
    }
  }
}

// How many runs fail with other chance from a moment on: a step at each moment, and a line where all do.
function drawWhen({ view, x, scene, left, right }, root) {
  const { runs, moments } = view.history.when;
  const [top, bottom] = [SIZES.axis + 2, SIZES.axis + SIZES.when - SIZES.gap];
  const group = svg("g", { class: "when", role: "img", "aria-label": "how many runs fail with other chance from a moment on; a table below has the numbers" }, scene);
  for (const y of [top, bottom]) svg("line", { x1: left, x2: right, y1: y, y2: y, class: "tick" }, group);
  let line = "";
  moments.forEach(([at, failed], n) => {
    const [begin, end] = [x(at), x(n + 1 < moments.length ? moments[n + 1][0] : view.history.ended)];
    const y = bottom - ((bottom - top) * Math.min(failed, runs)) / Math.max(runs, 1);
    line += `${n === 0 ? "M" : "L"}${begin} ${y}H${end}`;
    const step = svg("rect", { x: begin, y: top, width: Math.max(end - begin, 1), height: bottom - top, class: "hit" }, group);
    svg("title", {}, step).textContent = `${failed} of ${runs} fail with other chance after ${showTime(at, 1e6)}`;
  });
  if (!line) return;
  svg("path", { d: `${line}V${bottom}H${x(moments[0][0])}Z`, class: "share" }, group);
  svg("path", { d: line, class: "line" }, group);
  const open = moments.findLastIndex(([, failed]) => failed < runs);
  if (open + 1 < moments.length && x(moments[open + 1][0]) >= left) {
    const at = x(moments[open + 1][0]);
    svg("line", { x1: at, x2: at, y1: top, y2: view.layout.height, class: "certain" }, group);
    const after = at + 50 < right;
    svg("text", { x: at + (after ? 4 : -4), y: bottom - 5, "text-anchor": after ? "start" : "end" }, group).textContent = "certain";
  }
  svg("text", { x: view.gutter - 6, y: (top + bottom) / 2 + 4, class: "name", "text-anchor": "end" }, root).textContent = "fail";
}

function classes(pen, item, more) {
  const { view } = pen;
  const dim = view.dimmed && view.dimmed.has(item.name) ? " dim" : "";
  const chosen = view.selected === item.name ? " selected" : "";
  return `${more}${isWitness(view.history, item) ? " witness" : ""}${dim}${chosen}`;
}

function drawOperation(pen, operation) {
  const [begin, end] = [pen.x(operation.called), Math.max(pen.x(operation.last), pen.x(operation.called) + 2)];
  if (end < pen.left || begin > pen.right) return;
  const group = svg("g", { "data-name": operation.name, class: classes(pen, operation, "operation") }, pen.scene);
  svg("title", {}, group).textContent = `${operation.call}: ${operation.outcome}`;
  const y = operation.y + 14;
  svg("rect", { x: begin, y: operation.y, width: end - begin, height: 18, class: "hit" }, group);
  svg("path", { d: `M${begin} ${y + 5}V${y}H${end}${operation.returned === null ? "" : `V${y + 5}`}`, class: "bracket" }, group);
  const [from, to] = [Math.max(begin, pen.left), Math.min(end, pen.right)];
  const label = fitted(operation.call, to - from - 2);
  if (label) svg("text", { x: from + 2, y: y - 3 }, group).textContent = label;
}

function drawTransaction(pen, transaction) {
  const [begin, end] = [pen.x(transaction.began), Math.max(pen.x(transaction.decided), pen.x(transaction.began) + 3)];
  const last = Math.max(pen.x(transaction.last), end);
  if (last < pen.left || begin > pen.right) return;
  const group = svg("g", {
    "data-name": transaction.name, class: classes(pen, transaction, `transaction ${transaction.fate}`),
  }, pen.scene);
  const y = transaction.y + 3;
  svg("title", {}, group).textContent = `T${transaction.id}: ${transaction.end || FATES[transaction.fate][0]}`;
  if (last > end + 1) svg("line", { x1: end, x2: last, y1: y + 7, y2: y + 7, class: "known" }, group);
  svg("rect", { x: begin, y, width: end - begin, height: 14, rx: 2.5, class: "bar" }, group);
  if (transaction.sent !== null && end - begin > 14) {
    const sent = pen.x(transaction.sent);
    svg("path", { d: `M${sent} ${y}v3M${sent} ${y + 11}v3`, class: "sent" }, group);
  }
  const from = Math.max(begin, pen.left);
  const fits = transaction.name.length * CHARACTER < Math.min(end, pen.right) - from - 4;
  if (fits) svg("text", { x: from + 4, y: y + 11 }, group).textContent = transaction.name;
}

function drawEvents(pen, lane) {
  let drawn = -Infinity;
  for (const event of lane.events) {
    const [begin, end] = [pen.x(event.at), pen.x(event.until ?? event.at)];
    if (end < pen.left || begin > pen.right) continue;
    // Marks on top of each other are one mark.
    const lasts = event.until !== null && end - begin > 3;
    if (!lasts && begin - drawn < 2 && pen.view.selected !== event.name) continue;
    drawn = begin;
    const group = svg("g", { "data-name": event.name, class: classes(pen, event, `event ${event.kind}`) }, pen.scene);
    svg("title", {}, group).textContent = event.machine ? `${event.machine}: ${event.text}` : event.text;
    const y = lane.stripTop;
    if (lasts) svg("rect", { x: begin, y: y + 1, width: end - begin, height: lane.strip - 2, rx: 2 }, group);
    else svg("path", { d: `M${begin} ${y}l5 5l-5 5l-5 -5z` }, group);
  }
}

function drawArrows(pen) {
  const { view, x, scene } = pen;
  for (const [from, to, key, kind] of view.arrows.slice(0, MOST_ARROWS)) {
    const [a, b] = [view.history.byName.get(from), view.history.byName.get(to)];
    if (!a || !b || a.y === undefined || b.y === undefined) continue;
    const start = [Math.max(x(a.decided), x(a.began) + 3), a.y + 10];
    const end = kind === "reads" ? [x(b.began), b.y + 10] : [Math.max(x(b.decided), x(b.began) + 3), b.y + 10];
    if (Math.max(start[0], end[0]) < pen.left || Math.min(start[0], end[0]) > pen.right) continue;
    const bend = Math.max(Math.abs(end[0] - start[0]) / 2, 24);
    const side = kind === "reads" ? -1 : 1;
    const path = svg("path", {
      d: `M${start[0]} ${start[1]}C${start[0] + bend} ${start[1]} ${end[0] + side * bend} ${end[1]} ${end[0]} ${end[1]}`,
      class: `arrow ${kind}`, "marker-end": `url(#${view.id}-${kind})`,
    }, scene);
    svg("title", {}, path).textContent = kind === "reads" ? `${to} reads ${key} from ${from}` : `${to} overwrites ${key} of ${from}`;
  }
}
