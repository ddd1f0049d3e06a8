// Creates directories, one after the other. Nobody else creates any, and nobody is told that a directory exists
// already.

const { directories, inTn, run, claim, range } = require('./tree')

run(async () => {
  for (const n of range(20)) {
    try {
      await inTn(tn => directories.create(tn, `directory ${n}`))
    } catch (error) {
      claim(false, `create of directory ${n}, which nobody else creates: ${error.message}`)
    }
  }
  return '20 created'
})
