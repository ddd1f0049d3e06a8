// The history of a run, from the embedded data.

// What became of a transaction: in words, and whether its writes are in the database.
const FATES = {
  "committed": ["committed", true],
  "read-only": ["read only", false],
  "conflict": ["conflict, not committed", false],
  "unknown-committed": ["unknown result, committed", true],
  "unknown-not-committed": ["unknown result, not committed", false],
  "failed": ["failed", false],
  "dropped-committed": ["dropped, committed", true],
  "dropped": ["dropped", false],
};

const SETUP = -1;

function readHistory(json) {
  const data = JSON.parse(json);
  const text = (place) => (place === null ? null : data.texts[place]);
  const has = (flags, bit) => (flags >> bit) % 2 === 1;
  const readRow = ([key, value, writer, flags]) =>
    ({ key: text(key), value: text(value), writer, shared: has(flags, 0) });
  const readCall = ([name, at, flags, rows, more]) => ({
    name: text(name), at: text(at), reads: has(flags, 0), snapshot: has(flags, 1), answered: has(flags, 2),
    bookkeeping: has(flags, 3), writes: has(flags, 4), rows: rows.map(readRow), more,
  });
  const operations = data.operations.map(([client, index, call, called, returned, outcome]) =>
    ({ client, index, call: text(call), called, returned, outcome: text(outcome), name: `O${client}.${index}` }));
  const transactions = data.transactions.map(
    ([id, client, operation, began, readVersion, sent, durable, ended, fate, version, end, refusedBy, calls, thread, after]) => ({
      id, client: client ?? SETUP, operation, began, readVersion, sent, durable, ended, fate, version,
      end: text(end), refusedBy, thread, after, calls: calls.map(readCall), name: `T${id}`,
      inEffect: FATES[fate][1],
      // The bar ends when the outcome is decided, and a line goes on until the client knows it.
      decided: durable ?? ended,
      last: Math.max(ended, durable ?? 0),
    }));
  const events = data.events.map(([kind, at, until, client, machine, what], n) =>
    ({ kind, at, until, client, machine: text(machine), text: text(what), name: `E${n}` }));
  const history = {
    ended: data.ended, operations, transactions, events,
    witness: {
      operations: new Set(data.witness.operations.map(([client, index]) => `O${client}.${index}`)),
      transactions: new Set(data.witness.transactions.map((id) => `T${id}`)),
      keys: new Set(data.witness.keys.map(text)),
    },
    when: data.when ?? null,
    byName: new Map(),
  };
  for (const item of [...operations, ...transactions, ...events]) history.byName.set(item.name, item);
  for (const operation of operations) operation.last = operation.returned ?? nextCall(operations, operation) ?? data.ended;
  return history;
}

// When the client of an operation that did not return called the next one.
function nextCall(operations, operation) {
  const next = operations.find((o) => o.client === operation.client && o.index === operation.index + 1);
  return next && next.called;
}

function isWitness(history, item) {
  const { operations, transactions } = history.witness;
  return operations.has(item.name) || transactions.has(item.name);
}

// The transactions that a transaction read from, as [writer, reader, key].
function readsFrom(transaction) {
  const found = new Map();
  for (const call of transaction.calls) {
    if (!call.reads) continue;
    for (const row of call.rows) {
      if (row.writer !== null && row.writer !== transaction.id && !found.has(row.writer)) found.set(row.writer, row.key);
    }
  }
  return [...found].map(([writer, key]) => [`T${writer}`, transaction.name, key]);
}

// The transactions whose writes others wrote over, as [earlier, later, key], in the order of their commits.
function overwrites(history) {
  const order = history.transactions.filter((t) => t.inEffect && t.version !== null);
  order.sort((a, b) => compareVersions(a.version, b.version));
  const [writers, found] = [new Map(), []];
  for (const transaction of order) {
    const earlier = new Map();
    for (const call of transaction.calls) {
      if (!call.writes || call.bookkeeping) continue;
      for (const { key } of call.rows) {
        const before = writers.get(key);
        if (before && before !== transaction.name) earlier.set(before, key);
        writers.set(key, transaction.name);
      }
    }
    for (const [before, key] of earlier) found.push([before, transaction.name, key]);
  }
  return found;
}

// Versions are texts of whole numbers.
function compareVersions(a, b) {
  const [x, y] = [BigInt(a), BigInt(b)];
  return x < y ? -1 : x > y ? 1 : 0;
}

function touches(transaction, part) {
  const has = (text) => text.toLowerCase().includes(part);
  return transaction.calls.some((call) => has(call.at) || call.rows.some((row) => has(row.key)));
}
