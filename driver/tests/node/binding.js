// FoundationDB's published Node binding on the driver: values, ranges, atomic operations, versionstamps, tuples,
// directories, conflicts, errors and watches. Prints what it sees, so that two runs with one seed can be compared.

const assert = require('node:assert')
const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open()
const tuples = db.at(fdb.tuple.pack(['t'])).withKeyEncoding(fdb.encoders.tuple).withValueEncoding(fdb.encoders.json)

async function values() {
  await db.set('key', 'value')
  assert.strictEqual((await db.get('key')).toString(), 'value')
  await db.clear('key')
  assert.strictEqual(await db.get('key'), undefined)
}

async function ranges() {
  await tuples.doTransaction(async tn => {
    for (let n = 0; n < 50; n++) tn.set(['row', n], { n })
  })
  const rows = await tuples.getRangeAllStartsWith(['row'])
  assert.deepStrictEqual(rows.map(([key]) => key[1]), [...Array(50).keys()])
  const last = await tuples.getRangeAll(['row', 10], ['row', 20], { reverse: true, limit: 2 })
  assert.deepStrictEqual(last.map(([, value]) => value.n), [19, 18])
}

// Many transactions at a time, which conflict: the answers come in an order that the seed determines.
async function concurrency() {
  const order = []
  await Promise.all([...Array(12).keys()].map(n => tuples.doTransaction(async tn => {
    const count = (await tn.get(['count', n % 2])) ?? 0
    tn.set(['count', n % 2], count + 1)
  }).then(() => order.push(n))))
  const counts = await Promise.all([0, 1].map(n => tuples.get(['count', n])))
  // An unknown result may have been a commit.
  assert(counts[0] >= 6 && counts[1] >= 6, counts)
  console.log('order', order.join(' '), 'counts', counts.join(' '))
}

async function stamps() {
  await db.setVersionstampPrefixedValue('stamped', Buffer.from('v'))
  const { stamp } = await db.getVersionstampPrefixedValue('stamped')
  assert.strictEqual(stamp.length, 10)
  console.log('stamp', stamp.toString('hex'))
}

async function directories() {
  const users = await fdb.directory.createOrOpen(db, ['app', 'users'])
  await fdb.directory.createOrOpen(db, ['app', 'orders'])
  const names = (await fdb.directory.listAll(db, ['app'])).map(String).sort()
  assert.deepStrictEqual(names, ['orders', 'users'])
  assert(await fdb.directory.exists(db, ['app', 'users']))
  assert(users.getSubspace)
}

async function errors() {
  await assert.rejects(db.set('k'.repeat(20_000), 'v'), error => error.code === 2102)
}

async function watches() {
  const watch = await db.doTransaction(async tn => tn.watch('watched'))
  await db.set('watched', 'changed')
  assert.strictEqual(await watch.promise, true)
}

async function main() {
  const alone = process.argv.includes('alone')
  const steps = [values, ranges, concurrency, stamps, ...(alone ? [] : [directories, watches]), errors]
  for (const step of steps) await step()
  console.log('passed')
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
}).finally(() => db.close())
