// Opens collections of documents, and runs programs on a seed.

// First, so that nothing has drawn or read the clock before.
const { countReadings, Broken, claim, chance, range } = require('../common')

countReadings()

const { getRxStorageFoundationDB } = require('rxdb/plugins/storage-foundationdb')
const { getRxStorageMemory } = require('rxdb/plugins/storage-memory')
const ours = getRxStorageFoundationDB({ apiVersion: 720 })
// RxDB's own storage in memory, to compare.
const storage = process.argv.includes('memory') ? getRxStorageMemory() : ours
const fdb = require('foundationdb')
const { fillWithDefaultSettings, normalizeMangoQuery, prepareQuery } = require('rxdb')

// As users describe them. Each identifier has all its characters, as numbers with leading zeros, dates and
// UUIDs do.
const described = {
  version: 0,
  type: 'object',
  primaryKey: 'id',
  properties: {
    id: { type: 'string', maxLength: 3 },
    group: { type: 'string', maxLength: 8 },
    count: { type: 'integer', minimum: 0, maximum: 999, multipleOf: 1 },
    log: { type: 'array', items: { type: 'string' } },
  },
  required: ['group', 'count'],
  // Without any, RxDB makes that of the identifiers.
  indexes: ['id', 'group'],
}
const schema = fillWithDefaultSettings(described)

// The storage asks the directory layer of the binding for its directory. A transaction in which a read fails
// while that creates one fails for ever, so that it is created here, with a transaction for each attempt.
async function makeDirectory() {
  const db = fdb.open()
  for (let tn = db.rawCreateTransaction(); ; tn = db.rawCreateTransaction()) {
    try {
      await fdb.directory.createOrOpen(tn, 'rxdb')
      await tn.rawCommit()
      return db
    } catch (error) {
      if (!(error instanceof fdb.FDBError)) throw error
      await tn.rawOnError(error.code)
    }
  }
}

// An instance of the storage, as the collection "documents" of a database has it.
let instances = 0
const opened = []
async function open() {
  const instance = await storage.createStorageInstance({
    databaseInstanceToken: `token${instances++}`,
    databaseName: 'database',
    collectionName: 'documents',
    schema,
    options: {},
    multiInstance: false,
    devMode: false,
  })
  opened.push(instance)
  return instance
}

// A document as RxDB passes it to the storage. `writer` is the token of its database, and makes the revision
// with the number of changes so far, as RxDB has it.
let stamp = 1_500_000_000_000
const revised = (writer, previous, data) => ({
  id: data.id,
  group: data.group,
  count: data.count,
  _deleted: data._deleted ?? false,
  _attachments: {},
  _meta: { lwt: stamp++ },
  _rev: `${previous ? Number(previous._rev.split('-')[0]) + 1 : 1}-${writer}`,
})

// The documents that a query of a user finds. RxDB adds that they are not deleted.
async function find(instance, { selector, ...rest }) {
  const query = { selector: { _deleted: { $eq: false }, ...selector }, ...rest }
  const { documents } = await instance.query(prepareQuery(schema, normalizeMangoQuery(schema, query)))
  return documents
}

// Runs a check. It throws if a promise is broken; an error that the storage throws fails as well.
async function run(check) {
  let db
  try {
    db = await makeDirectory()
    console.log(await check(db))
  } catch (error) {
    console.error(error instanceof Broken ? error.message : error)
    process.exitCode = 1
  } finally {
    for (const instance of opened) await instance.close()
    if (db) db.close()
  }
}

const name = number => String(number).padStart(3, '0')

module.exports = { storage, described, schema, fdb, open, revised, find, run, claim, chance, range, name }
