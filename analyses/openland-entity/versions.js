// Tasks change one account. Its version code is the number of its changes: those acknowledged, and at most as
// many again as had unknown results.

const { run, root, inTx, seen, claim, range } = require('./store')

const ID = 100
const TASKS = 5
const CHANGES = 4

const check = async ({ accounts }) => {
  await inTx(root, async ctx => {
    if (!(await accounts.findById(ctx, ID))) await accounts.create(ctx, ID, { email: 'changed@x', group: '' })
  })
  const before = seen.unknown
  await Promise.all(range(TASKS).map(async who => {
    for (const n of range(CHANGES)) {
      // Appends, so that no change can be lost unseen.
      await inTx(root, async ctx => {
        const account = await accounts.findById(ctx, ID)
        account.group += ` ${who}.${n}`
      })
    }
  }))
  const unknown = seen.unknown - before
  const [code, group] = await inTx(root, async ctx => {
    const account = await accounts.findById(ctx, ID)
    return [account.metadata.versionCode, account.group]
  })
  const changes = group.trim().split(' ')
  for (const who of range(TASKS)) {
    for (const n of range(CHANGES)) claim(changes.includes(`${who}.${n}`), `change ${who}.${n} is lost`)
  }
  claim(code === changes.length, `${changes.length} changes, and version ${code}`)
  claim(code <= TASKS * CHANGES + unknown, `${TASKS * CHANGES} changes made, ${unknown} unknown, and version ${code}`)
  return `version ${code}`
}

module.exports = check
if (require.main === module) run(check)
