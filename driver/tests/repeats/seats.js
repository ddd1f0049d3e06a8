// Buyers take seats, all at once. A ticket's number is drawn within the transaction, which may run again after it has
// committed.

const { randomUUID, randomBytes } = require('node:crypto')
const { promisify } = require('node:util')
const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open()

const buy = () => db.doTransaction(async tn => {
  const free = Number(await tn.get('free'))
  if (free === 0) return
  const ticket = randomUUID()
  tn.set('free', String(free - 1))
  tn.set(`ticket/${ticket}`, await promisify(randomBytes)(4))
  return ticket
})

async function main() {
  await db.set('free', '9')
  const bought = (await Promise.all(Array.from({ length: 12 }, buy))).filter(Boolean)
  const tickets = (await db.getRangeAllStartsWith('ticket/')).map(([key]) => String(key).slice(7))
  const unknown = tickets.filter(ticket => !bought.includes(ticket))
  if (unknown.length) throw new Error(`tickets that nobody has: ${unknown}`)
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
}).finally(() => db.close())
