// Counts votes, all at once: each is a transaction. The binding runs a transaction again if the result of its commit is
// unknown, and then a vote may count twice.

const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open()
const VOTERS = 20

const one = Buffer.alloc(8)
one.writeBigUInt64LE(1n)

const vote = () => db.doTransaction(async tn => tn.add('votes', one))

async function main() {
  await Promise.all(Array.from({ length: VOTERS }, vote))
  const votes = (await db.get('votes')).readBigUInt64LE()
  if (votes !== BigInt(VOTERS)) throw new Error(`${VOTERS} voters and ${votes} votes`)
  console.log('each vote counted once')
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
}).finally(() => db.close())
