// Tasks create, move and delete accounts, all at once; each has its own. Afterwards no two accounts have one
// e-mail address, every account is found by its key and by both indexes, the indexes find nothing else, and
// each task finds what it was told.

const { run, root, inTx, seen, claim, chance, range } = require('./store')

const EMAILS = range(8).map(n => `${n}@x`)
const GROUPS = ['a', 'b', 'c']
const VIOLATION = 'Unique index constraint violation'
const some = list => list[chance(list.length)]

const check = async ({ accounts }) => {
  let refused = 0
  let already = 0

  // Draws first: what a task does is then not a matter of how the others run.
  const plans = range(10).map(id => ({
    id,
    steps: range(5).map(() => ({ step: chance(5), email: some(EMAILS), group: some(GROUPS) })),
  }))

  // The account that a task must find in the end, or null.
  const task = async ({ id, steps }) => {
    let mine = null
    for (const { step, email, group } of steps) {
      try {
        if (!mine) {
          await inTx(root, ctx => accounts.create(ctx, id, { email, group }))
          mine = { email, group }
        } else if (step > 0) {
          await inTx(root, async ctx => {
            const account = await accounts.findById(ctx, id)
            claim(account, `account ${id} was created and is not found`)
            account.email = email
            account.group = group
          })
          mine = { email, group }
        } else {
          await inTx(root, async ctx => (await accounts.findById(ctx, id))?.delete(ctx))
          mine = null
        }
      } catch (error) {
        if (error.message === VIOLATION) {
          refused++
        } else if (error.message === 'Entity already exists' && seen.unknown > 0) {
          // The first attempt had an unknown result and is committed.
          already++
          mine = { email, group }
        } else {
          throw error
        }
      }
    }
    return mine
  }
  const expected = await Promise.all(plans.map(task))

  // A transaction for each question: within one, the layer answers from its cache.
  const all = await inTx(root, async ctx => (await accounts.findAll(ctx)).map(({ id, email, group }) => ({ id, email, group })))
  const owner = new Map()
  for (const { id, email } of all) {
    claim(!owner.has(email), `accounts ${owner.get(email)} and ${id} both have ${email}`)
    owner.set(email, id)
  }
  for (const email of EMAILS) {
    const found = await inTx(root, async ctx => (await accounts.findByEmail(ctx, email))?.id)
    claim(found === owner.get(email), `${email} is of account ${owner.get(email)}, and its index finds ${found}`)
  }
  for (const group of GROUPS) {
    const found = await inTx(root, async ctx => (await accounts.findByGroup(ctx, group)).map(({ id }) => id).join())
    const members = all.filter(account => account.group === group).map(({ id }) => id).join()
    claim(found === members, `group ${group} has accounts ${members}, and its index finds ${found}`)
  }
  for (const [id, mine] of expected.entries()) {
    const told = mine ? `${mine.email} ${mine.group}` : 'nothing'
    const found = await inTx(root, async ctx => {
      const account = await accounts.findById(ctx, id)
      return account ? `${account.email} ${account.group}` : 'nothing'
    })
    claim(found === told, `account ${id} should be ${told}, and is ${found}`)
    claim(all.some(account => account.id === id) === (mine !== null), `findAll disagrees about account ${id}`)
  }
  return `${all.length} accounts, ${refused} refused, ${already} told that they exist already`
}

module.exports = check
if (require.main === module) run(check)
