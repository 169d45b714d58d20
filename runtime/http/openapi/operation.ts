/** Types of the entries of operations.ts, and the parameters and responses that many entries share. */
import type { SchemaName } from './schemas.ts'

export interface OperationDescription {
  readonly tag: string
  readonly summary: string
  /** Query parameters, as in query-parameters.ts. */
  readonly parameters: readonly string[]
  readonly body?: SchemaName | readonly [SchemaName] | undefined
  /** Body schema of each success status; null for no body, in brackets for a list. */
  readonly answers: Readonly<Record<number, SchemaName | readonly [SchemaName] | null>>
}

export const shown = [
  ...['options', 'format', 'attrs', 'pick', 'omit', 'lang', 'datasetId', 'local'],
  ...['join', 'joinLevel', 'containedBy', 'geometryProperty'],
]
export const page = ['limit', 'offset', 'count']
const geo = ['georel', 'geometry', 'coordinates', 'geoproperty']
const selecting = ['id', 'idPattern', 'q', ...geo, 'scopeQ', 'csf']
export const chosen = [...selecting, 'expandValues', 'jsonKeys']
/** Ordering and other parameters of all queries. */
export const ordered = ['orderBy', 'orderFrom', 'orderGeometry', 'collation', 'splitEntities']
/** Parameters of entity maps. */
export const mapping = ['entityMap', 'entityMapLifetime']
export const one = ['local', 'type']
export const source = [...selecting, 'type', 'attrs', 'lang', 'local', 'omit', 'options', 'pick']
export const times = ['timerel', 'timeAt', 'endTimeAt', 'timeproperty', 'lastN']
export const evolved = [
  ...[...times, 'aggrMethods', 'aggrPeriodDuration'],
  ...['attrs', 'datasetId', 'format', 'lang', 'local', 'omit', 'options', 'pick'],
]
export const ngsiLd = '/ngsi-ld/v1'
export const created = { 201: null } as const
export const done = { 204: null } as const
export const updated = { 204: null, 207: 'UpdateResult' } as const
export const batched = { 204: null, 207: 'BatchOperationResult' } as const

/** An operation in a table of operations; without parameters and body, none. */
export type OperationRow = readonly [
  summary: string,
  answers: OperationDescription['answers'],
  parameters?: readonly string[],
  body?: OperationDescription['body'],
]

/** The operations of one tag, by method and path; `prefix` stands before each path. */
export function operationsOf(
  tag: string,
  prefix: string,
  rows: Readonly<Record<string, OperationRow>>,
): Readonly<Record<string, OperationDescription>> {
  const entries = Object.entries(rows).map(([route, [summary, answers, parameters = [], body]]) => {
    const operation: OperationDescription = { tag, summary, answers, parameters, body }
    return [route.replace(' ', ` ${prefix}`), operation] as const
  })
  return Object.fromEntries(entries)
}
