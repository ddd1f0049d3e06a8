// Moves all accounts from group "a" to group "b" with iterateAllItems, five at a time. Nothing else runs
// meanwhile.

const { run, root, inTx, claim, range } = require('./store')

const ACCOUNTS = 20

run(async ({ accounts }) => {
  await inTx(root, async ctx => {
    if (await accounts.findById(ctx, 0)) return
    for (const id of range(ACCOUNTS)) await accounts.create(ctx, id, { email: `${id}@x`, group: 'a' })
  })
  await accounts.iterateAllItems(root, 5, async (ctx, items) => {
    for (const account of items) account.group = 'b'
  })
  const left = await inTx(root, async ctx => (await accounts.findByGroup(ctx, 'a')).map(({ id }) => id))
  claim(left.length === 0, `iterateAllItems has returned, and has not moved accounts ${left.join()}`)
  return 'all moved'
})
