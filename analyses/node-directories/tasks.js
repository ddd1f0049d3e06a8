// Tasks create, move and remove directories below one parent, all at once; each has its own names, and keeps a
// value in each directory. Afterwards the parent has the directories that the tasks were told of; each has its
// value and nothing else; no prefix begins with another; and nothing is stored outside of them.

const { fdb, directories, seen, inTn, run, claim, chance, range } = require('./tree')

const TASKS = 6
const STEPS = 5
const PARENT = 'parent'
const path = name => [PARENT, name]
const KEY = 'value'
// The directories' own data begins with this byte.
const NODES = 0xfe

const open = async (tn, name) => tn.at(await directories.open(tn, path(name)))

run(async () => {
  // Draws first: what a task does is then not a matter of how the others run.
  const plans = range(TASKS).map(task => range(STEPS).map(step => ({ step, kind: chance(4), names: [`${task}a`, `${task}b`] })))
  const expected = new Map()

  const task = async steps => {
    for (const { step, kind, names } of steps) {
      const [there, other] = expected.has(names[1]) ? [names[1], names[0]] : names
      const had = expected.get(there)
      if (had === undefined) {
        const value = `${there} of step ${step}`
        await inTn(async tn => {
          const directory = await directories.createOrOpen(tn, path(there))
          tn.at(directory).set(KEY, value)
        })
        expected.set(there, value)
      } else if (kind < 2) {
        const ours = { unknown: 0 }
        try {
          await inTn(tn => directories.move(tn, path(there), path(other)), ours)
        } catch (error) {
          // An attempt had an unknown result, and is committed.
          if (ours.unknown === 0 || error.message !== 'The source directory does not exist.') throw error
        }
        expected.delete(there)
        expected.set(other, had)
      } else if (kind < 3) {
        await inTn(tn => directories.removeIfExists(tn, path(there)))
        expected.delete(there)
      } else {
        const value = await inTn(async tn => (await open(tn, there)).get(KEY))
        claim(`${value}` === had, `directory ${there} has "${value}", and should have "${had}"`)
      }
    }
  }
  await Promise.all(plans.map(task))

  const listed = await inTn(async tn => ((await directories.exists(tn, PARENT)) ? directories.listAll(tn, PARENT) : []))
  const names = listed.map(String).sort()
  const told = [...expected.keys()].sort()
  claim(names.join() === told.join(), `there are directories ${names.join()}, and should be ${told.join()}`)
  const prefixes = new Map()
  for (const name of names) {
    const [prefix, rows] = await inTn(async tn => {
      const within = await open(tn, name)
      return [within.subspace.prefix, await within.getRangeAll('')]
    })
    const values = rows.map(([, value]) => `"${value}"`).join()
    claim(values === `"${expected.get(name)}"`, `directory ${name} has ${values}, and should have "${expected.get(name)}"`)
    for (const [other, taken] of prefixes) {
      const begins = prefix.indexOf(taken) === 0 || taken.indexOf(prefix) === 0
      claim(!begins, `directories ${other} and ${name} have the prefixes ${taken.toString('hex')} and ${prefix.toString('hex')}`)
    }
    prefixes.set(name, prefix)
  }
  const all = await inTn(tn => tn.at(fdb.root).getRangeAll(Buffer.of(), Buffer.of(NODES)))
  const outside = all.filter(([key]) => ![...prefixes.values()].some(prefix => key.indexOf(prefix) === 0))
  claim(outside.length === 0, `${outside.length} keys are in no directory, among them ${outside[0]?.[0].toString('hex')}`)
  return `${names.length} directories, ${seen.unknown} unknown results`
})
