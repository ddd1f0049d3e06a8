// Workers take jobs from a queue, and watch it while it is empty. A job is done again if its transaction runs again.

const { randomBytes } = require('node:crypto')
const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open()
const CHANGED = Buffer.from('changed')
const done = []
let isOver = false

const push = job => db.doTransaction(async tn => {
  tn.set(`job/${randomBytes(8).toString('hex')}`, job)
  tn.add(CHANGED, Buffer.from('0100000000000000', 'hex'))
})

const take = () => db.doTransaction(async tn => {
  const [row] = await tn.getRangeAllStartsWith('job/', { limit: 1 })
  if (!row) return { watch: tn.watch(CHANGED) }
  tn.clear(row[0])
  done.push(String(row[1]))
  return {}
})

async function worker() {
  while (!isOver) {
    const { watch } = await take()
    if (!watch) continue
    const timer = setTimeout(() => watch.cancel(), 2000)
    await watch.promise.catch(() => {})
    clearTimeout(timer)
  }
}

async function main() {
  const workers = [worker(), worker(), worker()]
  for (let n = 0; n < 15; n++) {
    await push(`job ${n}`)
    await new Promise(resolve => setTimeout(resolve, 40 * Math.random()))
  }
  while ((await db.getRangeAllStartsWith('job/')).length) await new Promise(resolve => setTimeout(resolve, 50))
  isOver = true
  await Promise.all(workers)
  if (done.length !== 15) throw new Error(`15 jobs, done: ${done}`)
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
}).finally(() => db.close())
