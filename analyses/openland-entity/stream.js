// Reads the events of some rooms from a stream each, all streams in one transaction, as live streams do: they
// read with the executor of small tasks, which calls runInBatch. Nothing is said meanwhile, and each stream
// gets everything.

const { run, root, inTx, claim, range } = require('./store')
const { runInBatch } = require('@openland/foundationdb')

const ROOMS = range(4)
const SAID = 8

run(async ({ events }) => {
  await inTx(root, async ctx => {
    if ((await events.all(ctx, 'room 0')).length > 0) return
    for (const room of ROOMS) for (const n of range(SAID)) events.say(ctx, `room ${room}`, `${n}`)
  })
  const streams = ROOMS.map(room => events.stream(`room ${room}`, { batchSize: 2 }))
  const got = ROOMS.map(() => [])
  for (let more = true; more; ) {
    const batches = await runInBatch(root, streams.map(stream => ctx => stream.next(ctx)))
    more = batches.some(batch => batch.length > 0)
    for (const room of ROOMS) got[room].push(...batches[room].map(event => event.text))
  }
  for (const room of ROOMS) {
    const missed = range(SAID).filter(n => !got[room].includes(`${n}`))
    claim(missed.length === 0, `room ${room}: ${SAID} events are there, and its stream has not got ${missed.join()}`)
  }
  return 'all read'
})
