// Asks for the documents up to one, again and again. Nothing else runs.

const { open, revised, find, run, claim, range, name } = require('./store')

run(async () => {
  const instance = await open()
  const rows = range(20).map(n => ({ document: revised('w', undefined, { id: name(n), group: 'a', count: 0 }) }))
  await instance.bulkWrite(rows, 'fill')

  for (const n of range(15)) {
    const found = await find(instance, { selector: { id: { $lte: name(n) } }, sort: [{ id: 'asc' }] })
    const beyond = found.map(({ id }) => id).filter(id => id > name(n))
    claim(beyond.length === 0, `a query for documents up to ${name(n)} finds ${beyond.join()}`)
  }
  return '15 asked for'
})
