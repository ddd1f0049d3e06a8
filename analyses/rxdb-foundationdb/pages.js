// Reads documents in pages: each begins behind the last document of the page before. Nothing else runs.

const { open, revised, find, run, claim, range, name } = require('./store')

const DOCUMENTS = 40
const PAGE = 2

run(async () => {
  const instance = await open()
  const all = range(DOCUMENTS).map(name)
  const rows = all.map(id => ({ document: revised('w', undefined, { id, group: 'a', count: 0 }) }))
  await instance.bulkWrite(rows, 'fill')

  const read = []
  for (let last = ''; ;) {
    const page = await find(instance, { selector: { id: { $gt: last } }, sort: [{ id: 'asc' }], limit: PAGE })
    if (page.length === 0) break
    read.push(...page.map(({ id }) => id))
    last = read[read.length - 1]
  }
  const left = all.filter(id => !read.includes(id))
  claim(left.length === 0, `${DOCUMENTS} documents are there, and the pages leave out ${left.join()}`)
  return `${read.length} read`
})
