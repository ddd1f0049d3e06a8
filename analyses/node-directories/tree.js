// Opens the database, and runs programs on a seed.

// Neither chance nor the clock may make a difference between two runs of a seed: the layer draws prefixes.
let state = Number(process.env.SHAKETABLE_SEED ?? 0)
Math.random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 2 ** 32
}

const fdb = require('foundationdb')

fdb.setAPIVersion(720)
const db = fdb.open()
const directories = fdb.directory

// What came to our retry loop.
const seen = { unknown: 0 }

// A retry loop as that of the binding, but that each attempt has a transaction of its own: the next attempt of
// one that has failed may fail for ever (lock.js). It counts unknown results in `ours`, too.
async function inTn(body, ours = { unknown: 0 }) {
  for (let tn = db.rawCreateTransaction(); ; tn = db.rawCreateTransaction()) {
    try {
      const result = await body(tn)
      await tn.rawCommit()
      return result
    } catch (error) {
      if (!(error instanceof fdb.FDBError)) throw error
      if (error.code === 1021 || error.code === 1039) {
        seen.unknown++
        ours.unknown++
      }
      await tn.rawOnError(error.code)
    }
  }
}

// Runs a check. It throws if a promise is broken; an error that the layer throws fails as well.
async function run(check) {
  try {
    console.log(await check())
  } catch (error) {
    console.error(error instanceof Broken ? error.message : error)
    process.exitCode = 1
  } finally {
    db.close()
  }
}

// The message of a broken promise is one line, the same in every run of a seed.
class Broken extends Error {}
const claim = (holds, message) => {
  if (!holds) throw new Broken(message)
}

// A number below `bound`.
const chance = bound => Math.floor(Math.random() * bound)
const range = count => [...Array(count).keys()]

module.exports = { fdb, db, directories, seen, inTn, run, claim, chance, range }
