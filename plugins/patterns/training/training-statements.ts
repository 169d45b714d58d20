/** The table of trainings: requests, and the results of those that ended. */
import type { Json, PluginDatabase } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'

/** Migration step; a released step never changes. */
export const trainingTables = `CREATE TABLE trainings (
  id TEXT PRIMARY KEY,
  started INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  request TEXT NOT NULL,
  result TEXT
) WITHOUT ROWID;`

export interface TrainingResult {
  readonly state: 'trained' | 'failed'
  /** Numeric values that were read. */
  readonly values: number
  readonly windows?: number
  readonly message?: string
  /** The body by which the model can be registered. */
  readonly document?: JsonObject
}

/** A training as a client requested it. */
export interface RequestedTraining {
  readonly id: string
  readonly startedAt: number
  readonly request: Json
}

export interface StoredTraining extends RequestedTraining {
  /** How often it began. */
  readonly runs: number
  /** Undefined unless it ended. */
  readonly result: TrainingResult | undefined
}

export interface TrainingStatements {
  /** Oldest first. */
  all(): readonly StoredTraining[]
  /** Adds a training that begins. */
  put(training: RequestedTraining): void
  countRun(id: string): void
  end(id: string, result: TrainingResult): void
  delete(id: string): void
}

interface TrainingRow {
  readonly id: string
  readonly started: number
  readonly runs: number
  readonly request: string
  readonly result: string | null
}

export function createTrainingStatements(database: PluginDatabase): TrainingStatements {
  const put = database.prepare('INSERT INTO trainings VALUES (?, ?, 1, ?, NULL)')
  const countRun = database.prepare('UPDATE trainings SET runs = runs + 1 WHERE id = ?')
  const end = database.prepare('UPDATE trainings SET result = ? WHERE id = ?')
  const remove = database.prepare('DELETE FROM trainings WHERE id = ?')
  return Object.freeze({
    all: () =>
      database
        .prepare('SELECT id, started, runs, request, result FROM trainings ORDER BY started, id')
        .all()
        .map((row) => storedOf(row as TrainingRow)),
    put: ({ id, startedAt, request }) => void put.run(id, startedAt, JSON.stringify(request)),
    countRun: (id) => void countRun.run(id),
    end: (id, result) => void end.run(JSON.stringify(result), id),
    delete: (id) => void remove.run(id),
  } satisfies TrainingStatements)
}

const storedOf = ({ id, started, runs, request, result }: TrainingRow): StoredTraining => ({
  id,
  startedAt: started,
  runs,
  request: JSON.parse(request) as Json,
  result: result === null ? undefined : (JSON.parse(result) as TrainingResult),
})
