// Writes an old revision of one document and inserts another, in one call: the first is a conflict, and the
// answer must say so once.

const { open, revised, run, claim, range, name } = require('./store')

run(async () => {
  const instance = await open()
  const first = revised('w', undefined, { id: name(0), group: 'a', count: 0 })
  const second = revised('x', first, { id: name(0), group: 'a', count: 1 })
  await instance.bulkWrite([{ document: first }], 'insert')
  await instance.bulkWrite([{ previous: first, document: second }], 'update')

  for (const n of range(20)) {
    const { error } = await instance.bulkWrite([
      { previous: first, document: revised('y', first, { id: name(0), group: 'b', count: 9 }) },
      { document: revised('y', undefined, { id: name(n + 1), group: 'b', count: 0 }) },
    ], 'both')
    const stale = error.filter(({ documentId }) => documentId === name(0)).length
    claim(stale === 1, `one write has conflicted in call ${n}, and the answer has ${stale} errors of it`)
  }
  return '20 conflicts'
})
