// Opens the database, and runs programs on a seed.

// First, so that nothing has drawn before: the layer draws prefixes.
const { Broken, claim, chance, range } = require('../common')

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

module.exports = { fdb, db, directories, seen, inTn, run, claim, chance, range }
