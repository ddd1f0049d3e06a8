// Deletes two documents in the same millisecond, as two processes may, and removes what is deleted. It needs
// no fault.

const { open, revised, run, claim, range, name } = require('./store')

run(async () => {
  const instance = await open()
  for (const id of range(2).map(name)) {
    const document = revised('w', undefined, { id, group: 'a', count: 0 })
    const gone = { ...revised('w', document, { ...document, _deleted: true }), _meta: { lwt: 1_400_000_000_000 } }
    await instance.bulkWrite([{ document }], 'insert')
    await instance.bulkWrite([{ previous: document, document: gone }], 'delete')
  }
  const done = await instance.cleanup(0)
  const left = (await instance.findDocumentsById(range(2).map(name), true)).map(({ id }) => id)
  claim(!done || left.length === 0, `cleanup says that all is removed, and document ${left.join()} is there`)
  return 'removed'
})
