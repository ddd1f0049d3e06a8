// Creates directories, one after the other, with the loop of the binding. Nothing else runs. If an attempt has
// failed ten times with one error, another transaction creates the same directory.

const { fdb, db, directories, inTn, run, claim, range } = require('./tree')

run(async () => {
  for (const n of range(8)) {
    const codes = []
    await db.doTn(async tn => {
      try {
        await directories.createOrOpen(tn, `directory ${n}`)
      } catch (error) {
        if (error instanceof fdb.FDBError) codes.push(error.code)
        if (codes.length < 10 || new Set(codes.slice(-10)).size > 1) throw error
        const { code } = error
        let attempts = 0
        await inTn(other => {
          attempts++
          return directories.createOrOpen(other, `directory ${n}`)
        })
        const others = attempts === 1 ? 'at once' : `in ${attempts} attempts`
        claim(false, `10 attempts of a transaction ended with ${code}, and another one created the directory ${others}`)
      }
    })
  }
  return '8 created'
})
