// A time line with its controls.

let timelines = 0;

class Timeline {
  constructor(root) {
    this.root = root;
    this.history = readHistory(root.querySelector("script").textContent);
    this.even = this.history.transactions.length <= 200;
    this.unfolded = false;
    this.shows = { reads: false, overwrites: false };
    this.id = `timeline-${++timelines}`;
    this.order = [...this.history.transactions].sort((a, b) => a.began - b.began || a.id - b.id);
    this.build();
    this.arrange();
    this.listen();
    const first = this.order.find((t) => isWitness(this.history, t));
    this.selected = first ? first.name : null;
    this.reset();
    show(this.panel, this.history, this.history.byName.get(this.selected));
    this.scrollTo(first);
    // A witness may be no more than a key: then who touches it is what there is to see.
    const { operations, transactions, keys } = this.history.witness;
    if (operations.size + transactions.size === 0 && keys.size > 0) {
      [this.filter.value] = keys;
      this.filterBy(this.filter.value);
    }
  }

  build() {
    const button = (action, words, title) => element("button", { type: "button", "data-do": action, title }, words);
    const check = (name, words, title) => element("label", { title },
      element("input", { type: "checkbox", "data-show": name }), words);
    this.filter = element("input", { type: "search", placeholder: "filter by key", "aria-label": "filter by key", list: `${this.id}-keys` });
    this.count = element("span", { class: "count", role: "status" });
    this.drawing = svg("svg", { role: "group", "aria-label": "time line" });
    this.canvas = element("div", { class: "canvas", tabindex: "0", "aria-label": "time line; n and p select a transaction, plus and minus zoom, arrows move" }, this.drawing);
    this.panel = element("div", { class: "panel", "aria-live": "polite" });
    const bar = element("div", { class: "controls" },
      element("span", { class: "group" }, button("previous", "‹", "previous transaction (p)"), button("next", "›", "next transaction (n)")),
      element("span", { class: "group" }, button("in", "+", "zoom in (+)"), button("out", "−", "zoom out (-)"),
        button("witness", "Witness", "the first view (0)"), button("all", "All", "the whole run (a)")),
      check("reads", "reads from", "arrows from writers to readers"),
      check("overwrites", "overwrites", "arrows to the transactions that overwrite"),
      check("even", "even", "the same space between any two moments, instead of time as it passes"),
      this.history.events.some((e) => e.machine !== null) ? check("machines", "machines", "a lane for each machine") : null,
      this.filter, this.count);
    bar.querySelector("[data-show=even]").checked = this.even;
    this.root.append(bar, element("div", { class: "split" }, element("div", { class: "drawn-part" }, this.canvas, legend(this.history)), this.panel), this.keyList());
    if (this.history.witness.transactions.size + this.history.witness.operations.size === 0) bar.querySelector("[data-do=witness]").textContent = "Reset";
  }

  // Keys that several transactions touch are offered to the filter.
  keyList() {
    const keys = new Set(this.history.witness.keys);
    for (const t of this.history.transactions) {
      for (const call of t.calls) for (const row of call.rows) if (row.shared && keys.size < 100) keys.add(row.key);
    }
    return element("datalist", { id: `${this.id}-keys` }, ...[...keys].map((key) => element("option", { value: key })));
  }

  arrange() {
    this.layout = lanesOf(this.history, this.unfolded);
    this.scale = scaleOf(this.history, this.even);
  }

  // The first view: the witness with what is around it, or what the clients did.
  reset() {
    const marked = [...this.history.operations, ...this.history.transactions].filter((i) => isWitness(this.history, i));
    const all = this.history.operations.length > 0 ? this.history.operations : this.history.transactions;
    const few = this.history.transactions.length <= 40;
    this.fit(few || marked.length === 0 ? [...marked, ...all] : marked, few ? 0.03 : 0.35);
  }

  fit(items, margin) {
    if (items.length === 0) return this.look(0, 1);
    const places = items.flatMap((i) => [i.called ?? i.began, i.last]).map(this.scale.at);
    const [from, to] = [places.reduce((a, b) => Math.min(a, b)), places.reduce((a, b) => Math.max(a, b))];
    const around = Math.max((to - from) * margin, this.scale.even ? this.scale.step * 2 : 2e6 * this.scale.step);
    this.look(from - around, to + around);
  }

  look(from, to) {
    const least = this.scale.even ? this.scale.step * 2 : 1000 * this.scale.step;
    const span = Math.min(Math.max(to - from, least), 1);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, 0), 1 - span);
    this.to = this.from + span;
    this.redraw();
  }

  // Zooms by a factor around a share of the width.
  zoom(factor, share = 0.5) {
    const fixed = this.from + (this.to - this.from) * share;
    const span = (this.to - this.from) * factor;
    this.look(fixed - span * share, fixed + span * (1 - share));
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.look(this.from + by, this.to + by);
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  drawNow() {
    const width = Math.max(this.canvas.clientWidth, 200);
    const gutter = width < 560 ? 44 : 84;
    draw(this.drawing, { ...this, width, gutter, arrows: this.arrows() });
  }

  // The arrows of the selected transaction, or of all if none is selected.
  arrows() {
    const { reads, overwrites: over } = this.shows;
    const chosen = this.selected && this.selected[0] === "T" ? this.selected : null;
    const found = [];
    if (reads) for (const t of this.history.transactions) for (const edge of readsFrom(t)) found.push([...edge, "reads"]);
    if (over) {
      this.overwritten ??= overwrites(this.history);
      for (const edge of this.overwritten) found.push([...edge, "overwrites"]);
    }
    const shown = found.filter(([from, to]) => !chosen || from === chosen || to === chosen);
    this.note = shown.length > MOST_ARROWS ? `${MOST_ARROWS} of ${shown.length} arrows` : "";
    this.tell();
    return shown;
  }

  tell() {
    const words = [this.note];
    if (this.dimmed) words.unshift(`${this.matching().length} of ${this.order.length} transactions`);
    this.count.textContent = words.filter((word) => word).join(", ");
  }

  matching() {
    return this.dimmed ? this.order.filter((t) => !this.dimmed.has(t.name)) : this.order;
  }

  filterBy(words) {
    const part = words.trim().toLowerCase();
    const others = part ? this.history.transactions.filter((t) => !touches(t, part)) : null;
    this.dimmed = others ? new Set(others.map((t) => t.name)) : null;
    this.redraw();
  }

  select(name) {
    const item = this.history.byName.get(name);
    this.selected = item ? name : null;
    show(this.panel, this.history, item);
    if (item) {
      const [begin, end] = [this.scale.at(item.called ?? item.began ?? item.at), this.scale.at(item.last ?? item.at)];
      if (end < this.from || begin > this.to) {
        const span = this.to - this.from;
        const middle = (begin + Math.min(end, begin + span)) / 2;
        this.look(middle - span / 2, middle + span / 2);
      }
      this.scrollTo(item);
    }
    this.redraw();
  }

  // Moves the lanes, not the page, so that a transaction can be seen.
  scrollTo(item) {
    if (!item || item.y === undefined) return;
    const { scrollTop, clientHeight } = this.canvas;
    if (item.y - 30 < scrollTop || item.y + 40 > scrollTop + clientHeight) this.canvas.scrollTop = Math.max(item.y - clientHeight / 3, 0);
  }

  // The next transaction, or the one before.
  step(by) {
    const among = this.matching();
    if (among.length === 0) return;
    const at = among.findIndex((t) => t.name === this.selected);
    const next = at < 0 ? (by > 0 ? 0 : among.length - 1) : Math.min(Math.max(at + by, 0), among.length - 1);
    this.select(among[next].name);
  }

  act(action) {
    const actions = {
      in: () => this.zoom(0.6), out: () => this.zoom(1 / 0.6), left: () => this.move(-0.2), right: () => this.move(0.2),
      next: () => this.step(1), previous: () => this.step(-1), witness: () => this.reset(), all: () => this.look(0, 1),
      none: () => this.select(null),
    };
    actions[action]();
  }

  toggle(name, on) {
    if (name === "even" || name === "machines") {
      const [begin, end] = [this.scale.time(this.from), this.scale.time(this.to)];
      if (name === "even") this.even = on;
      else this.unfolded = on;
      this.arrange();
      this.look(this.scale.at(begin), this.scale.at(end));
    } else {
      this.shows[name] = on;
      this.redraw();
    }
  }

  listen() {
    this.root.addEventListener("click", (event) => {
      const named = event.target.closest("[data-do], [data-select]");
      if (named && named.dataset.do) this.act(named.dataset.do);
      else if (named) this.select(named.dataset.select);
    });
    this.root.addEventListener("change", (event) => {
      if (event.target.dataset.show) this.toggle(event.target.dataset.show, event.target.checked);
    });
    this.filter.addEventListener("input", () => this.filterBy(this.filter.value));
    this.filter.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.step(1);
    });
    this.drag();
    // The page scrolls under the wheel, unless the time line has the focus.
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== this.canvas) return;
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / box.width);
      else this.zoom(Math.exp(event.deltaY * 0.002), Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1));
    }, { passive: false });
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  // Dragging moves the view; a click without a move selects.
  drag() {
    let start = null;
    this.canvas.addEventListener("pointerdown", (event) => {
      start = { x: event.clientX, from: this.from, to: this.to, moved: false };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!start || event.buttons === 0) return;
      const by = event.clientX - start.x;
      start.moved ||= Math.abs(by) > 4;
      const share = (-by / this.canvas.clientWidth) * (start.to - start.from);
      if (start.moved) this.look(start.from + share, start.to + share);
    });
    this.canvas.addEventListener("click", (event) => {
      const moved = start && start.moved;
      start = null;
      if (moved) return;
      const found = event.target.closest("[data-name]");
      this.select(found ? found.dataset.name : null);
    });
  }
}

// What the colours mean: only those that the run has.
function legend(history) {
  const fates = new Set(history.transactions.map((t) => t.fate));
  const list = element("p", { class: "legend" });
  for (const fate of Object.keys(FATES)) {
    if (!fates.has(fate)) continue;
    const sample = svg("svg", { width: 18, height: 12, "aria-hidden": "true" });
    svg("rect", { x: 1, y: 1, width: 16, height: 10, rx: 2.5, class: "bar" }, svg("g", { class: `transaction ${fate}` }, sample));
    list.append(element("span", {}, sample, FATES[fate][0]));
  }
  const drawn = (name, words, content) => {
    const sample = svg("svg", { width: 18, height: 12, "aria-hidden": "true" });
    content(svg("g", { class: name }, sample));
    list.append(element("span", {}, sample, words));
  };
  const box = (group) => svg("rect", { x: 1, y: 1, width: 16, height: 10, rx: 2.5, class: "bar" }, group);
  const { operations, transactions: marked } = history.witness;
  if (operations.size + marked.size > 0) drawn("transaction witness", "witness", box);
  if (history.when) drawn("when", "runs that fail with other chance", (group) => svg("path", { d: "M1 11V8H9V2H17V11Z", class: "share" }, group));
  const kinds = new Set(history.events.map((e) => e.kind));
  if (kinds.has("fault")) drawn("event fault", "fault", (group) => svg("path", { d: "M9 1l5 5l-5 5l-5 -5z" }, group));
  if (kinds.has("dead")) drawn("event dead", "machine dead", box);
  if (kinds.has("paused")) drawn("event paused", "machine paused", box);
  if (kinds.has("recovery")) drawn("event recovery", "recovery", box);
  list.append(element("span", { class: "keys" }, "keys: n p transactions · + − zoom · ← → move · 0 first view · a all · Esc none"));
  return list;
}
