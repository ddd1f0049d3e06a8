// Rooms with a live stream each, in which things are said. Whoever listens to a live stream gets everything
// that was said since, in order.

const { run, root, inTx, claim, range } = require('./store')

const ROOMS = range(4)
const SAID = 8

run(async ({ events }) => {
  const say = (room, text) => inTx(root, async ctx => events.say(ctx, room, text))
  const listen = async room => {
    const got = []
    for await (const { items } of events.live(root, room)) {
      got.push(...items.map(event => event.text))
      if (got.some(text => text.startsWith('end'))) return got
    }
  }
  const speak = async (room, heard) => {
    for (const n of range(SAID)) await say(room, `${n}`)
    // A stream that looked just before is told of the next one only: say the end until it is heard.
    for (let n = 0; !heard.done; n++) {
      await say(room, `end ${n}`)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  const rooms = ROOMS.map(room => {
    const heard = { done: false }
    const listened = listen(`room ${room}`).finally(() => { heard.done = true })
    return { room, heard, listened }
  })
  // All listen before anything is said.
  await new Promise(resolve => setTimeout(resolve, 100))
  await Promise.all(rooms.map(({ room, heard }) => speak(`room ${room}`, heard)))
  for (const { room, listened } of rooms) {
    const got = await listened
    const missed = range(SAID).filter(n => !got.includes(`${n}`))
    claim(missed.length === 0, `room ${room}: ${SAID} things were said, and its live stream has not got ${missed.join()}`)
  }
  return 'all heard'
})
