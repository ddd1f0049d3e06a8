// Tasks change few documents in three instances of the storage, all at once: each change appends its name to
// the log of a document, unless it is there, moves the document to a group, and deletes it or brings it back. A
// task reads and writes again after a conflict, as RxDB does. Afterwards each document has each of its changes
// once; queries find what is there; each index has an entry for each document, and no others; and a cleanup
// leaves nothing of the deleted documents.

const { open, revised, find, run, claim, chance, range, name } = require('./store')
const { getIndexableStringMonad } = require('rxdb')

const TASKS = 6
const CHANGES = 5
const DOCUMENTS = 3
const GROUPS = ['a', 'b', 'c']

run(async () => {
  const instances = [await open(), await open(), await open()]
  const [instance] = instances
  const ids = range(DOCUMENTS).map(name)
  // Draws first: what a task does is then not a matter of how the others run.
  const plans = range(TASKS).map(task => range(CHANGES).map(step => ({
    change: `${task}.${step}`,
    id: ids[chance(DOCUMENTS)],
    group: GROUPS[chance(GROUPS.length)],
    _deleted: chance(4) === 0,
  })))

  let conflicts = 0
  const task = async (changes, number) => {
    const through = instances[number % instances.length]
    for (const { change, id, group, _deleted } of changes) {
      for (;;) {
        const [previous] = await through.findDocumentsById([id], true)
        if (previous?.log.includes(change)) break
        const log = [...(previous?.log ?? []), change]
        const document = { ...revised(`task${number}`, previous, { id, group, count: log.length, _deleted }), log }
        const { error } = await through.bulkWrite([{ previous, document }], 'task')
        if (error.length === 0) break
        claim(error.every(({ status }) => status === 409), `a change ends with ${error[0].status}`)
        conflicts++
      }
    }
  }
  await Promise.all(plans.map(task))

  const all = await instance.findDocumentsById(ids, true)
  for (const id of ids) {
    const told = plans.flat().filter(plan => plan.id === id).map(({ change }) => change).sort()
    const log = [...(all.find(document => document.id === id)?.log ?? [])].sort()
    claim(log.join() === told.join(), `document ${id} has the changes ${log.join()}, and should have ${told.join()}`)
  }

  const dbs = await instance.internals.dbsPromise
  const agree = async (documents, when) => {
    for (const group of GROUPS) {
      const found = (await find(instance, { selector: { group }, sort: [{ id: 'asc' }] })).map(({ id }) => id).join()
      const there = documents.filter(one => one.group === group && !one._deleted).map(({ id }) => id).sort().join()
      claim(found === there, `group ${group} has documents ${there} ${when}, and the query finds ${found}`)
    }
    for (const { db, index, indexName } of Object.values(dbs.indexes)) {
      const entries = (await db.getRangeAllStartsWith('')).map(([key, id]) => `${key}=${id}`).sort()
      const entry = getIndexableStringMonad(instance.schema, index)
      const due = documents.map(document => `${entry(document)}=${document.id}`).sort()
      claim(
        JSON.stringify(entries) === JSON.stringify(due),
        `index ${indexName} has ${entries.length} entries ${when}: ${entries.join()}, and should have ${due.join()}`,
      )
    }
  }
  await agree(all, 'after the changes')
  while (!await instance.cleanup(0));
  const rest = await instance.findDocumentsById(ids, true)
  const gone = rest.filter(({ _deleted }) => _deleted).map(({ id }) => id)
  claim(gone.length === 0, `document ${gone.join()} is deleted, and is there after a cleanup`)
  const kept = all.filter(({ _deleted }) => !_deleted)
  claim(rest.length === kept.length, `${kept.length} documents are not deleted, and ${rest.length} are left`)
  await agree(kept, 'after the cleanup')
  return `${TASKS * CHANGES} changes, ${conflicts} conflicts`
})
