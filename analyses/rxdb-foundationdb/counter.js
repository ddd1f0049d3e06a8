// Increments a counter with a collection of RxDB: a function that RxDB applies to the document.

const { storage, described, run, claim, range, name } = require('./store')
const { createRxDatabase } = require('rxdb')

run(async () => {
  const database = await createRxDatabase({ name: 'database', storage, multiInstance: false })
  try {
    const { documents } = await database.addCollections({ documents: { schema: described } })
    const counter = await documents.incrementalUpsert({ id: name(0), group: 'a', count: 0 })
    for (const _ of range(20)) await counter.incrementalModify(data => ({ ...data, count: data.count + 1 }))
    const { count } = counter.getLatest()
    claim(count === 20, `20 increments counted as ${count}`)
    return '20 counted'
  } finally {
    await database.close()
  }
})
