// Inserts documents, one after the other, and subscribes to the stream of changes. Nobody else writes. Each
// document that is stored must have come in the stream, and no write may be refused for its own sake.
//
// own.js stream   looks at the stream only

const { open, revised, run, claim, range, name } = require('./store')

run(async () => {
  const instance = await open()
  const heard = new Set()
  instance.changeStream().subscribe(({ events }) => events.forEach(({ documentId }) => heard.add(documentId)))

  const ids = range(30).map(name)
  for (const id of ids) {
    const document = revised('w', undefined, { id, group: 'a', count: 0 })
    const { error } = await instance.bulkWrite([{ document }], 'insert')
    if (process.argv[2] === 'stream') continue
    for (const { status, documentInDb } of error) {
      const whose = JSON.stringify(documentInDb) === JSON.stringify(document) ? 'itself' : 'another document'
      claim(false, `the insert of document ${id}, which nobody else writes, ends with ${status}: a conflict with ${whose}`)
    }
  }
  const stored = (await instance.findDocumentsById(ids, false)).map(({ id }) => id).sort()
  const unheard = stored.filter(id => !heard.has(id))
  claim(unheard.length === 0, `${stored.length} documents are stored, and the stream of changes has not had ${unheard.join()}`)
  return `${stored.length} stored`
})
