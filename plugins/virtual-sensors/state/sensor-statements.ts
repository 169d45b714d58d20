/** The virtual sensors on disk, and the secret of the callbacks. */
import { randomBytes } from 'node:crypto'
import type { FollowedFacts } from '#client/subscriptions/broker-follower.ts'
import type { PluginDatabase } from '#contract'
import type { VirtualSensorModel } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import type { VirtualDocument, VirtualSensor, VirtualState } from './virtual-sensor.ts'

/** Migration step. */
export const tables = [
  `CREATE TABLE sensors (
  id TEXT PRIMARY KEY,
  broker TEXT NOT NULL,
  state TEXT NOT NULL,
  document TEXT NOT NULL,
  model TEXT,
  facts TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL);`,
]

export interface SensorTable {
  /** Those at the served broker, without their models. */
  all(): readonly VirtualSensor[]
  /** The model of one; models are read one by one, since all of them have some MB. */
  model(id: string): VirtualSensorModel | undefined
  /** How many are at brokers that were served before. */
  readonly elsewhere: () => number
  put(sensor: VirtualSensor): void
  putFacts(sensor: Pick<VirtualSensor, 'id' | 'facts'>): void
  delete(id: string): void
  /** Signs the addresses of callbacks. */
  readonly secret: string
}

interface Row {
  readonly id: string
  readonly state: VirtualState
  readonly document: string
  readonly facts: string
}

export function createSensorTable(database: PluginDatabase, broker: string): SensorTable {
  const sql = {
    all: database.prepare('SELECT id, state, document, facts FROM sensors WHERE broker = ?'),
    model: database.prepare('SELECT model FROM sensors WHERE id = ?').pluck(),
    elsewhere: database.prepare('SELECT count(*) FROM sensors WHERE broker <> ?').pluck(),
    put: database.prepare('INSERT OR REPLACE INTO sensors VALUES (?, ?, ?, ?, ?, ?)'),
    putFacts: database.prepare('UPDATE sensors SET facts = ? WHERE id = ?'),
    delete: database.prepare('DELETE FROM sensors WHERE id = ?'),
    secret: database.prepare('SELECT text FROM secret').pluck(),
    putSecret: database.prepare('INSERT INTO secret VALUES (1, ?)'),
  }
  if (sql.secret.get() === undefined) sql.putSecret.run(randomBytes(24).toString('hex'))
  return Object.freeze({
    all: () =>
      (sql.all.all(broker) as Row[]).map(({ id, state, document, facts }) => ({
        id,
        state,
        document: JSON.parse(document) as VirtualDocument,
        model: undefined,
        facts: JSON.parse(facts) as FollowedFacts,
        progress: 0,
        failures: 0,
        trouble: undefined,
        followedState: undefined,
        work: new AbortController(),
      })),
    model(id) {
      const text = sql.model.get(id) as string | null | undefined
      return typeof text === 'string' ? (JSON.parse(text) as VirtualSensorModel) : undefined
    },
    elsewhere: () => sql.elsewhere.get(broker) as number,
    put({ id, state, document, model, facts }) {
      const text = model === undefined ? null : JSON.stringify(model)
      sql.put.run(id, broker, state, JSON.stringify(document), text, JSON.stringify(facts))
    },
    putFacts: ({ id, facts }) => void sql.putFacts.run(JSON.stringify(facts), id),
    delete: (id) => void sql.delete.run(id),
    secret: sql.secret.get() as string,
  } satisfies SensorTable)
}
