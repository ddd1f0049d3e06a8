// Tasks say things in a room, two in a transaction. All that was acknowledged is there; what was said after
// the answer to something else comes after it; the two of a transaction are beside each other, in order; and
// a stream in small batches has what the whole list has.

const { run, root, inTx, seen, claim, range } = require('./store')

const check = async ({ events }) => {
  let clock = 0
  const said = []
  const task = async who => {
    for (const n of range(5)) {
      const text = `${who}.${n}`
      const began = clock++
      await inTx(root, async ctx => {
        events.say(ctx, 'room', `${text} first`)
        events.say(ctx, 'room', `${text} second`)
      })
      said.push({ text, began, ended: clock++ })
    }
  }
  await Promise.all(range(6).map(task))

  const all = await inTx(root, ctx => events.all(ctx, 'room'))
  const at = text => all.indexOf(`${text} first`)
  for (const { text } of said) claim(at(text) >= 0, `${text} was said and is not there`)
  for (const [n, text] of all.entries()) {
    if (text.endsWith('first')) {
      claim(all[n + 1] === text.replace('first', 'second'), `after "${text}" comes "${all[n + 1]}"`)
    }
  }
  for (const a of said) {
    for (const b of said) {
      claim(a.ended > b.began || at(a.text) < at(b.text), `${a.text} was answered before ${b.text} was said, and is after it`)
    }
  }
  const twice = all.length / 2 - said.length
  claim(twice <= seen.unknown, `${twice} twice, with ${seen.unknown} unknown results`)

  const stream = events.stream('room', { batchSize: 7 })
  const streamed = []
  for (let batch; (batch = await stream.next(root)).length; ) streamed.push(...batch.map(event => event.text))
  claim(streamed.join() === all.join(), `the stream has ${streamed.length} events, the list ${all.length}`)
  return `${all.length} events`
}

module.exports = check
if (require.main === module) run(check)
