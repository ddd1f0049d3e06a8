// Creates accounts, one after the other. No other task creates any, and nobody is told that an account exists
// already.

const { run, root, inTx, claim, range } = require('./store')

run(async ({ accounts }) => {
  for (const id of range(20)) {
    try {
      await inTx(root, ctx => accounts.create(ctx, id, { email: `${id}@x`, group: 'a' }))
    } catch (error) {
      claim(false, `create of account ${id}, which nobody else creates: ${error.message}`)
    }
  }
  return '20 created'
})
