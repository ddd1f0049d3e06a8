// Where things are: lanes and their rows from top to bottom, and time from left to right.

const SIZES = { axis: 26, when: 46, operations: 24, row: 20, strip: 12, gap: 6 };

// Places spans below each other where they overlap. Returns the number of rows, at least one.
function pack(spans, start, end) {
  const ends = [];
  for (const span of [...spans].sort((a, b) => start(a) - start(b))) {
    let row = ends.findIndex((last) => last <= start(span));
    if (row < 0) row = ends.length;
    ends[row] = Math.max(end(span), start(span) + 1);
    span.row = row;
  }
  return Math.max(ends.length, 1);
}

// The lanes: clients, the setup and machines. Machines are one lane unless they are unfolded.
function lanesOf(history, unfolded) {
  const clients = new Map();
  const lane = (client) => {
    if (!clients.has(client)) {
      const name = client === SETUP ? "setup" : `client ${client}`;
      const short = client === SETUP ? "setup" : `c${client}`;
      clients.set(client, { name, short, client, operations: [], transactions: [], events: [], matters: false });
    }
    return clients.get(client);
  };
  for (const operation of history.operations) lane(operation.client).operations.push(operation);
  for (const transaction of history.transactions) lane(transaction.client).transactions.push(transaction);
  const machines = new Map();
  for (const event of history.events) {
    if (event.client !== null) lane(event.client).events.push(event);
    else if (event.machine !== null) {
      const name = unfolded ? event.machine : "machines";
      if (!machines.has(name)) {
        machines.set(name, { name, short: unfolded ? name : "mach.", machine: true, operations: [], transactions: [], events: [] });
      }
      machines.get(name).events.push(event);
    }
  }
  for (const item of [...history.operations, ...history.transactions]) {
    if (isWitness(history, item)) lane(item.client).matters = true;
  }
  const byName = (a, b) => a.name.localeCompare(b.name, "en", { numeric: true });
  const number = (l) => (l.client === SETUP ? Infinity : l.client);
  const few = clients.size <= 6;
  // With many clients, those of the witness come first.
  const ordered = [...clients.values()].sort((a, b) => (few ? 0 : b.matters - a.matters) || number(a) - number(b));
  const lanes = [...ordered, ...[...machines.values()].sort(byName)];
  let y = SIZES.axis + (history.when ? SIZES.when : 0);
  for (const l of lanes) {
    l.top = y;
    // Operations of a client follow each other; a damaged report may say otherwise.
    l.brackets = l.operations.length > 0 ? pack(l.operations, (o) => o.called, (o) => o.last) * SIZES.operations : 4;
    l.rows = l.machine ? 0 : pack(l.transactions, (t) => t.began, (t) => t.last);
    l.strip = l.events.length > 0 ? SIZES.strip : 0;
    l.stripTop = l.top + l.brackets + l.rows * SIZES.row;
    l.height = l.brackets + l.rows * SIZES.row + l.strip + SIZES.gap;
    for (const o of l.operations) o.y = l.top + o.row * SIZES.operations;
    for (const t of l.transactions) t.y = l.top + l.brackets + t.row * SIZES.row;
    y += l.height;
  }
  return { lanes, height: y + 2 };
}

// A scale from times to the numbers from 0 to 1: of time as it passes, or with the same space between any two moments
// at which something happened.
function scaleOf(history, even) {
  if (!even) {
    const ended = Math.max(history.ended, 1);
    return { even, at: (time) => time / ended, time: (place) => place * ended, step: 1 / ended };
  }
  const moments = new Set([0, history.ended]);
  for (const o of history.operations) moments.add(o.called).add(o.last);
  for (const t of history.transactions) {
    moments.add(t.began).add(t.decided).add(t.last);
    if (t.sent !== null) moments.add(t.sent);
  }
  for (const e of history.events) {
    moments.add(e.at);
    if (e.until !== null) moments.add(e.until);
  }
  const sorted = Float64Array.from(moments).sort();
  const last = Math.max(sorted.length - 1, 1);
  // The last moment that is not after a time.
  const before = (time) => {
    let [low, high] = [0, sorted.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (sorted[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const at = (time) => {
    const n = before(time);
    const span = n + 1 < sorted.length ? sorted[n + 1] - sorted[n] : 1;
    return (n + Math.min(Math.max((time - sorted[n]) / span, 0), 1)) / last;
  };
  const time = (place) => {
    const n = Math.min(Math.max(Math.floor(place * last), 0), sorted.length - 1);
    const next = sorted[Math.min(n + 1, sorted.length - 1)];
    return sorted[n] + (next - sorted[n]) * (place * last - n);
  };
  return { even, at, time, moments: sorted, step: 1 / last };
}

// Nanoseconds in the unit that fits a span.
function showTime(time, span) {
  if (span >= 2e9 || span === 0) return `${(time / 1e9).toFixed(span >= 2e10 ? 0 : span >= 2e9 ? 1 : 3)} s`;
  const digits = span >= 1e7 ? 0 : span >= 1e6 ? 1 : 4;
  return `${(time / 1e6).toLocaleString("en", { maximumFractionDigits: digits })} ms`;
}

// The ticks of the axis between two places: times with their labels, at least `room` pixels apart.
function ticks(scale, from, to, width, room) {
  const most = Math.max(Math.floor(width / room), 1);
  const found = [];
  if (scale.even) {
    const [first, last] = [Math.ceil(from / scale.step), Math.floor(to / scale.step)];
    const every = Math.max(Math.ceil((last - first + 1) / most), 1);
    for (let n = Math.ceil(first / every) * every; n <= last; n += every) {
      const time = scale.moments[n];
      if (time !== undefined) found.push([time, `${(time / 1e6).toLocaleString("en", { maximumFractionDigits: time >= 1e10 ? 0 : 1 })} ms`]);
    }
    return found;
  }
  const [begin, end] = [scale.time(from), scale.time(to)];
  const rough = (end - begin) / most;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  for (let time = Math.ceil(begin / step) * step; time <= end; time += step) found.push([time, showTime(time, end - begin)]);
  return found;
}
