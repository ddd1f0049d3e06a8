// What programs of analyses in Node share. They require it before all packages: neither chance nor the clock may make
// a difference between two runs of a seed.

let state = Number(process.env.SHAKETABLE_SEED ?? 0)
Math.random = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return state / 2 ** 32
}

// The clock counts its readings, for packages that read it.
const countReadings = () => {
  let clock = 1_600_000_000_000
  Date.now = () => clock++
}

// The message of a broken promise is one line, the same in every run of a seed.
class Broken extends Error {}
const claim = (holds, message) => {
  if (!holds) throw new Broken(message)
}

// A number below `bound`.
const chance = bound => Math.floor(Math.random() * bound)
const range = count => [...Array(count).keys()]

module.exports = { countReadings, Broken, claim, chance, range }
