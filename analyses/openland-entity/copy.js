// Copies a subspace with copySubspace, five keys at a time. Nothing else runs meanwhile.

const { run, root, inTx, claim, range } = require('./store')
const { copySubspace } = require('@openland/foundationdb')

const KEYS = 20

run(async ({ db }) => {
  const from = db.allKeys.subspace(Buffer.from('from'))
  const to = db.allKeys.subspace(Buffer.from('to'))
  await inTx(root, async ctx => {
    for (const n of range(KEYS)) from.set(ctx, Buffer.of(n), Buffer.from('value'))
  })
  await copySubspace(root, from, to, 5)
  const copied = await inTx(root, async ctx => (await to.range(ctx, Buffer.of())).map(({ key }) => key[0]))
  const left = range(KEYS).filter(n => !copied.includes(n))
  claim(left.length === 0, `copySubspace has returned, and has not copied keys ${left.join()}`)
  return 'all copied'
})
