// Workers share a lease that runs out. One that is slow goes on to work when another one has it.

const { setTimeout: sleep } = require('node:timers/promises')
const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open().withValueEncoding(fdb.encoders.json)
const TTL = 300

const acquire = name => db.doTransaction(async tn => {
  const held = await tn.get('lease')
  if (held && held.name !== name && held.until > Date.now()) return false
  tn.set('lease', { name, until: Date.now() + TTL })
  return true
})

const release = name => db.doTransaction(async tn => {
  if ((await tn.get('lease'))?.name === name) tn.clear('lease')
})

async function worker(name) {
  for (let turn = 0; turn < 3; turn++) {
    while (!await acquire(name)) await sleep(10 + 100 * Math.random())
    const seen = await db.get('count')
    await sleep(-150 * Math.log(Math.random()))
    await db.set('count', seen + 1)
    await release(name)
  }
}

async function main() {
  await db.set('count', 0)
  await Promise.all(['ann', 'bob', 'eve'].map(worker))
  const count = await db.get('count')
  if (count !== 9) throw new Error(`${count} of 9 turns are counted`)
}

main().catch(error => {
  console.error(error.message)
  process.exitCode = 1
}).finally(() => db.close())
