// The panel with everything about one transaction, operation or event.

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A button that selects something by its name, if it is in the history.
function link(history, name, words) {
  if (!history.byName.has(name)) return words ?? name;
  return element("button", { type: "button", class: "link", "data-select": name }, words ?? name);
}

function pairs(rows) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of rows) {
    if (value === null || value === undefined || value === "") continue;
    list.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
  return list;
}

function milliseconds(time) {
  return time === null ? null : `${(time / 1e6).toFixed(3)} ms`;
}

function show(panel, history, item) {
  panel.replaceChildren();
  if (!item) panel.append(element("p", { class: "note" }, "Select a transaction, an operation or a fault; n and p go from one transaction to the next."));
  else if (item.name[0] === "T") showTransaction(panel, history, item);
  else if (item.name[0] === "O") showOperation(panel, history, item);
  else showEvent(panel, item);
}

function heading(panel, history, item, words) {
  const mark = isWitness(history, item) ? element("span", { class: "badge failed" }, "witness") : null;
  panel.append(element("h4", {}, words, " ", mark));
}

function showOperation(panel, history, operation) {
  heading(panel, history, operation, `Operation ${operation.index} of client ${operation.client}`);
  panel.append(element("pre", {}, operation.call), pairs([
    ["outcome", operation.outcome],
    ["called", milliseconds(operation.called)],
    ["returned", milliseconds(operation.returned) ?? "never"],
  ]));
  const its = history.transactions.filter((t) => t.client === operation.client && t.operation === operation.index);
  const line = element("p", {}, its.length === 1 ? "Transaction " : "Transactions ");
  its.forEach((t, n) => line.append(n > 0 ? ", " : "", link(history, t.name)));
  panel.append(its.length > 0 ? line : element("p", { class: "note" }, "It began no transaction."));
}

function showEvent(panel, event) {
  const kinds = { fault: "Fault", dead: "A machine is dead", paused: "A machine is paused", recovery: "Recovery", act: "Act" };
  panel.append(element("h4", {}, kinds[event.kind]), element("p", {}, event.text), pairs([
    ["machine", event.machine],
    ["client", event.client === null ? null : String(event.client)],
    ["from", milliseconds(event.at)],
    ["until", milliseconds(event.until)],
  ]));
}

function showTransaction(panel, history, transaction) {
  const owner = transaction.client === SETUP ? "the setup" : `client ${transaction.client}`;
  heading(panel, history, transaction, `T${transaction.id} of ${owner}`);
  const operation = history.byName.get(`O${transaction.client}.${transaction.operation}`);
  panel.append(pairs([
    ["operation", operation ? link(history, operation.name, operation.call) : null],
    ["thread", transaction.thread === null ? null : String(transaction.thread)],
    ["again after", transaction.after === null ? null : link(history, `T${transaction.after}`)],
    ["fate", FATES[transaction.fate][0]],
    ["end", transaction.end],
    ["refused by", transaction.refusedBy === null ? null : link(history, `T${transaction.refusedBy}`)],
    ["read version", transaction.readVersion],
    ["commit version", transaction.version],
    ["began", milliseconds(transaction.began)],
    ["commit sent", milliseconds(transaction.sent)],
    ["durable", milliseconds(transaction.durable)],
    ["client knew", milliseconds(transaction.ended)],
  ]));
  const calls = transaction.calls.filter((call) => !call.bookkeeping);
  const others = transaction.calls.filter((call) => call.bookkeeping);
  if (calls.length > 0) panel.append(callList(history, calls));
  if (others.length > 0) {
    panel.append(element("details", {}, element("summary", {}, `${others.length} of the exactly-once session`), callList(history, others)));
  }
  if (transaction.calls.length === 0) panel.append(element("p", { class: "note" }, "No reads and no writes are recorded."));
}

// A key; those of the witness are marked.
function keyCode(history, key) {
  return element("code", history.witness.keys.has(key) ? { class: "key" } : {}, key);
}

function callList(history, calls) {
  const list = element("ol", { class: "calls" });
  for (const call of calls) {
    const line = element("li", { class: call.reads ? "read" : call.writes ? "write" : "aside" });
    line.append(element("b", {}, call.name), call.snapshot ? element("i", {}, " snapshot") : "", " ", keyCode(history, call.at));
    if (call.reads && !call.answered) line.append(element("i", {}, " no answer"));
    else if (call.reads && call.rows.length === 0) line.append(" → nothing");
    const single = call.rows.length === 1 && call.rows[0].key === call.at;
    for (const row of call.rows) line.append(rowLine(history, call, row, single));
    if (call.more > 0) line.append(element("div", { class: "row note" }, `and ${call.more} more`));
    list.append(line);
  }
  return list;
}

// A row: its key unless the call has it already, its value, and who wrote it.
function rowLine(history, call, row, single) {
  const line = element(single ? "span" : "div", { class: `row${row.shared ? " shared" : ""}` });
  const arrow = call.reads ? " → " : " = ";
  if (!single) line.append(keyCode(history, row.key));
  if (row.value !== null) line.append(arrow, element("code", {}, row.value));
  else if (call.reads && single) line.append(" → nothing");
  if (row.writer !== null) line.append(" ", element("span", { class: "from" }, "of ", link(history, `T${row.writer}`)));
  return line;
}
