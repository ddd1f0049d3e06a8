// The four checks that hold, one after the other on one cluster.

const { run, seen } = require('./store')
const checks = ['entities', 'counter', 'events', 'versions'].map(name => require(`./${name}`))

run(async store => {
  const said = []
  for (const check of checks) {
    seen.unknown = 0
    said.push(await check(store))
  }
  return said.join(', ')
})
