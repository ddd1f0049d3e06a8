// Small programs that need no fault: their name is the argument.

const { run, root, inTx, claim, range } = require('./store')

const programs = {
  // Tasks for the executor of small tasks, more than its batch of 100 at once: each runs once.
  async tasks({ db, counters }) {
    const count = Number(process.argv[3] ?? 101)
    await Promise.all(range(count).map(() => db.microtasks.execute(async ctx => counters.increment(ctx, 'ran'))))
    await new Promise(resolve => setTimeout(resolve, 200))
    const ran = await inTx(root, ctx => counters.get(ctx, 'ran'))
    claim(ran === count, `${count} tasks were executed ${ran} times`)
  },

  // Two transactions read a range at snapshot, declare the read a conflict, and write into the range if it is
  // empty.
  async conflict({ db }) {
    const space = db.allKeys.subspace(Buffer.from('seats'))
    const [start, end] = [Buffer.of(0), Buffer.of(255)]
    let reading = 0
    let go
    const both = new Promise(resolve => { go = resolve })
    const take = n => inTx(root, async ctx => {
      const taken = await space.snapshotRange(ctx, Buffer.of())
      space.addReadConflictRange(ctx, start, end)
      if (++reading === 2) go()
      await both
      if (taken.length === 0) space.set(ctx, Buffer.of(n), Buffer.from('taken'))
    })
    await Promise.all([take(1), take(2)])
    const taken = await inTx(root, ctx => space.range(ctx, Buffer.of()))
    claim(taken.length === 1, `${taken.length} transactions found the range empty`)
  },

  // Moves accounts with iterateAllItems, while another transaction changes one that has been read: a
  // conflict.
  async iterate({ accounts }) {
    await inTx(root, async ctx => {
      for (const id of range(4)) await accounts.create(ctx, id, { email: `${id}@x`, group: 'a' })
    })
    let others = 1
    await accounts.iterateAllItems(root, 2, async (ctx, items) => {
      for (const account of items) account.group = 'b'
      if (others-- > 0) await inTx(root, async other => { (await accounts.findById(other, 0)).email = 'other@x' })
    })
    const left = await inTx(root, async ctx => (await accounts.findByGroup(ctx, 'a')).map(({ id }) => id))
    claim(left.length === 0, `iterateAllItems has returned, and has not moved accounts ${left.join()}`)
  },

  // One transaction changes an account twice, and flushes in between.
  async flushes({ accounts }) {
    await inTx(root, async ctx => {
      const account = await accounts.create(ctx, 1, { email: '1@x', group: 'a' })
      account.group = 'b'
      await account.flush(ctx)
      account.group = 'c'
      await account.flush(ctx)
    })
    const code = await inTx(root, async ctx => (await accounts.findById(ctx, 1)).metadata.versionCode)
    claim(code === 2, `2 changes, and version ${code}`)
  },

  // A page of one.
  async limit({ accounts }) {
    await inTx(root, async ctx => {
      for (const id of range(3)) await accounts.create(ctx, id, { email: `${id}@x`, group: 'a' })
    })
    const { items } = await inTx(root, ctx => accounts.find(ctx, { limit: 1 }))
    claim(items.length === 1, `find with limit 1 finds ${items.length}`)
  },

  // The query of a group, where another group's name begins with it and a zero byte.
  async zero({ accounts }) {
    await inTx(root, async ctx => {
      await accounts.create(ctx, 1, { email: '1@x', group: 'a' })
      await accounts.create(ctx, 2, { email: '2@x', group: 'a\0b' })
    })
    try {
      const found = await inTx(root, async ctx => (await accounts.findByGroup(ctx, 'a')).map(({ id }) => id))
      claim(found.join() === '1', `group "a" has account 1, and its index finds ${found.join()}`)
    } catch (error) {
      claim(false, `group "a" has account 1, and its query fails: ${error.message}`)
    }
  },

  // The events of a room, where another room's name begins with its name and a zero byte.
  async rooms({ events }) {
    await inTx(root, async ctx => {
      events.say(ctx, 'a\0b', 'something')
    })
    const heard = await inTx(root, ctx => events.all(ctx, 'a'))
    claim(heard.length === 0, `in room "a" nothing was said, and it has ${heard.length} event`)
  },
}

const name = process.argv[2]
run(async store => {
  await programs[name](store)
  return `${name} passed`
})
