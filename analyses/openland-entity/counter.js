// Increments of a counter, all at once. It counts each acknowledged one, and a second time at most those
// whose result was unknown: the layer runs a transaction again as every retry loop of FoundationDB's bindings
// does. With the argument `once`, none may count twice.

const { run, root, inTx, seen, claim, range } = require('./store')

const INCREMENTS = 20

const check = async ({ counters }) => {
  await Promise.all(range(INCREMENTS).map(() => inTx(root, async ctx => counters.increment(ctx, 'hits'))))
  const unknown = process.argv.includes('once') ? 0 : seen.unknown
  const count = await inTx(root, ctx => counters.get(ctx, 'hits'))
  claim(
    count >= INCREMENTS && count <= INCREMENTS + unknown,
    `${INCREMENTS} increments counted as ${count}, with ${seen.unknown} unknown results`
  )
  return `${count} counted`
}

module.exports = check
if (require.main === module) run(check)
