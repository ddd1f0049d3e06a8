// The store of the programs here: accounts with a unique and a range index, counters and event stores. The
// layer's compiler generates such classes from a schema; these have its shape, written by hand. Their
// subspaces have fixed prefixes, where generated ones ask the directory layer for one.

// First, so that nothing has drawn or read the clock before.
const { countReadings, Broken, claim, chance, range } = require('../common')

countReadings()

require('@openland/log').disableAll()
const { createNamedContext } = require('@openland/context')
const { Database, encoders, inTx } = require('@openland/foundationdb')
const tracing = require('@openland/foundationdb/lib/tracing')
const { BusLayer } = require('@openland/foundationdb-bus')
const entity = require('@openland/foundationdb-entity')

const { codecs } = entity
const root = createNamedContext('analysis')

// What came to the layer's retry loop.
const seen = { unknown: 0, retries: 0 }
tracing.setTransactionTracer({
  ...tracing.TransactionTracer,
  onFDBError: (_, error) => {
    seen.retries++
    if (error.code === 1021 || error.code === 1039) seen.unknown++
  },
})

// As EntityStorage resolves them, but for the prefix.
const subspace = ({ db }, name) => db.allKeys.subspace(Buffer.from(`${name}\0`))
const entities = (storage, name) =>
  subspace(storage, name).withKeyEncoding(encoders.tuple).withValueEncoding(encoders.json)

class Account extends entity.Entity {
  get id() { return this._rawValue.id }
  get email() { return this._rawValue.email }
  set email(value) { this.change('email', value) }
  get group() { return this._rawValue.group }
  set group(value) { this.change('group', value) }
  delete(ctx) { return this._delete(ctx) }

  change(field, value) {
    if (this._rawValue[field] === value) return
    this._rawValue[field] = value
    this._updatedValues[field] = value
    this.invalidate()
  }
}

class Accounts extends entity.EntityFactory {
  static open(storage) {
    const index = (name, type, fields) => ({
      name,
      storageKey: name,
      type: { type, fields },
      subspace: entities(storage, `account by ${name}`),
    })
    const email = { name: 'email', type: 'string' }
    const group = { name: 'group', type: 'string' }
    return new Accounts({
      name: 'Account',
      storageKey: 'account',
      subspace: entities(storage, 'account'),
      codec: codecs.struct({ id: codecs.integer, email: codecs.string, group: codecs.string }),
      primaryKeys: [{ name: 'id', type: 'integer' }],
      fields: [email, group].map(({ name, type }) => ({ name, type: { type }, secure: false })),
      secondaryIndexes: [index('email', 'unique', [email]), index('group', 'range', [group])],
      storage,
      allowDelete: true,
    })
  }

  _createEntityInstance(ctx, value) {
    return new Account([value.id], value, this.descriptor, this._flush, this._delete, ctx)
  }

  create(ctx, id, value) { return this._create(ctx, [id], this.descriptor.codec.normalize({ id, ...value })) }
  async findById(ctx, id) { return this._findById(ctx, [id]) }
  findByEmail(ctx, email) { return this._findFromUniqueIndex(ctx, [email], this.descriptor.secondaryIndexes[0]) }
  async findByGroup(ctx, group) { return (await this._query(ctx, this.descriptor.secondaryIndexes[1], [group])).items }
}

class Said extends entity.BaseEvent {
  type = 'said'
  get text() { return this.raw.text }
}

class Events extends entity.EventStore {
  static open(storage) {
    const factory = new entity.EventFactory()
    factory.registerEventType('said', event => event.raw, raw => new Said(raw))
    const rooms = subspace(storage, 'room').withValueEncoding(encoders.json)
    return new Events({ name: 'Room', storageKey: 'room', subspace: rooms, storage, factory })
  }

  say(ctx, room, text) { this._post(ctx, [room], new Said({ text })) }
  async all(ctx, room) { return (await this._findAll(ctx, [room])).map(event => event.text) }
  stream(room, opts) { return this._createStream([room], opts) }
  live(ctx, room) { return this._createLiveStream(ctx, [room]) }
}

class Counters extends entity.AtomicIntegerFactory {
  static open(storage) { return new Counters(storage, subspace(storage, 'counter')) }
  get(ctx, name) { return this._get(ctx, [name]) }
  increment(ctx, name) { this._increment(ctx, [name]) }
}

// Those who subscribed in this process hear what is published.
class Bus {
  heard = new Map()
  publish(topic, data) { for (const hear of this.heard.get(topic) ?? []) hear(data) }
  subscribe(topic, hear) {
    if (!this.heard.has(topic)) this.heard.set(topic, new Set())
    this.heard.get(topic).add(hear)
    return { cancel: () => this.heard.get(topic).delete(hear) }
  }
}

// Runs a check on an open store. It throws if a promise is broken; an error that the layer throws fails as
// well.
async function run(check) {
  let db
  try {
    db = await Database.open({ layers: [new BusLayer(new Bus())] })
    const storage = new entity.EntityStorage(db)
    const store = {
      db,
      accounts: Accounts.open(storage),
      counters: Counters.open(storage),
      events: Events.open(storage),
    }
    console.log(await check(store))
  } catch (error) {
    console.error(error instanceof Broken ? error.message : error)
    process.exitCode = 1
  } finally {
    if (db) db.rawDB.close()
  }
}

module.exports = { run, root, inTx, seen, claim, chance, range }
