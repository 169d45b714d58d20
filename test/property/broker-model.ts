/**
 * A model of the broker in plain maps: current entities, every accepted observation as an identity (time and
 * value) with its units, and the number of notifications for one subscription to all created or updated
 * attributes. The model has no groups, logs, tails, chunks or documents.
 */
import type { Json } from '#contract/pipeline.ts'

/** `t` in seconds since the epoch of the test; without it there is no observedAt. */
export interface Given {
  readonly value: Json
  readonly t?: number | undefined
  readonly unit?: string | undefined
}

export type Attributes = Readonly<Record<string, Given>>

export type Op =
  | { readonly op: 'create'; readonly id: string; readonly attributes: Attributes }
  | { readonly op: 'patch'; readonly id: string; readonly attributes: Attributes }
  | {
      readonly op: 'upsert'
      readonly id: string
      readonly attributes: Attributes
      readonly update: boolean
    }
  /**
   * From a device: newer than all, older than some, or a repetition (of the n-th observation of the
   * attribute).
   */
  | {
      readonly op: 'observe'
      readonly id: string
      readonly name: string
      readonly t: number
      readonly value: Json
    }
  | { readonly op: 'again'; readonly id: string; readonly name: string; readonly n: number }
  | { readonly op: 'drop'; readonly id: string; readonly name: string }
  | { readonly op: 'remove'; readonly id: string }

export type Answer = 'ok' | 'not-found' | 'already-exists'

interface Attribute extends Given {
  /** Identities in the attribute's stream, as `t value`. */
  readonly known: ReadonlySet<string>
}

export interface Observed {
  readonly name: string
  readonly t: number
  readonly value: Json
}

export interface Model {
  readonly entities: Map<string, Map<string, Attribute>>
  /** By entity and identity; an entity that ever existed has an entry. */
  readonly history: Map<string, Map<string, Observed & { readonly units: Set<string | undefined> }>>
  deliveries: number
}

export const emptyModel = (): Model => ({ entities: new Map(), history: new Map(), deliveries: 0 })

export const copyOf = (model: Model): Model => structuredClone(model)

export const identityOf = (t: number, value: Json): string => `${t} ${JSON.stringify(value)}`

/** Applies one operation; returns undefined, and does nothing, if the outcome is not determined. */
export function apply(model: Model, op: Op): Answer | undefined {
  const entity = model.entities.get(op.id)
  switch (op.op) {
    case 'create':
      if (entity !== undefined) return 'already-exists'
      create(model, op.id, op.attributes)
      return 'ok'
    case 'upsert':
      if (entity === undefined) create(model, op.id, op.attributes)
      else write(model, op.id, entity, op.attributes, op.update ? [] : [...entity.keys()])
      return 'ok'
    case 'patch':
      if (entity !== undefined) write(model, op.id, entity, op.attributes, [])
      return entity === undefined ? 'not-found' : 'ok'
    case 'drop':
      if (!entity?.delete(op.name)) return 'not-found'
      return 'ok'
    case 'remove':
      return model.entities.delete(op.id) ? 'ok' : 'not-found'
    case 'observe':
      if (!entity?.has(op.name)) return 'not-found'
      observe(model, op.id, entity, op)
      return 'ok'
    case 'again':
      return again(model, op.id, entity, op)
  }
}

function create(model: Model, id: string, attributes: Attributes): void {
  if (!model.history.has(id)) model.history.set(id, new Map())
  model.entities.set(id, new Map(Object.entries(attributes).map(([name, given]) => [name, fresh(given)])))
  for (const [name, given] of Object.entries(attributes)) remember(model, id, name, given)
  if (Object.keys(attributes).length > 0) model.deliveries++
}

/**
 * A write by a client: differing attributes are written; any change beyond observations creates one new
 * document.
 */
function write(
  model: Model,
  id: string,
  entity: Map<string, Attribute>,
  attributes: Attributes,
  present: readonly string[],
): void {
  const changed = Object.entries(attributes).filter(([name, given]) => !isSame(entity.get(name), given))
  const gone = present.filter((name) => attributes[name] === undefined)
  const isObservation = ([name, given]: [string, Given]): boolean =>
    entity.has(name) && given.t !== undefined && entity.get(name)!.unit === given.unit
  const areObservations = gone.length === 0 && changed.every(isObservation)
  for (const [name, given] of changed) {
    const { known } = entity.get(name) ?? fresh(given)
    const seen = areObservations ? [identityOf(given.t!, given.value)] : []
    entity.set(name, { ...given, known: new Set([...known, ...seen]) })
    remember(model, id, name, given)
  }
  for (const name of gone) entity.delete(name)
  model.deliveries += areObservations ? changed.length : changed.length > 0 ? 1 : 0
}

/** A new observation from a device. */
function observe(
  model: Model,
  id: string,
  entity: Map<string, Attribute>,
  { name, t, value }: Observed,
): void {
  const before = entity.get(name)!
  const isCurrent = before.t === undefined || t >= before.t
  const known = new Set([...before.known, identityOf(t, value)])
  entity.set(name, isCurrent ? { value, t, unit: before.unit, known } : { ...before, known })
  remember(model, id, name, { value, t, unit: before.unit })
  if (isCurrent) model.deliveries++
}

/**
 * A repeated observation changes nothing. The outcome is not determined if only a client wrote the original
 * and the device's observation would become current: recognition then depends on the contents of memory.
 */
function again(
  model: Model,
  id: string,
  entity: Map<string, Attribute> | undefined,
  { name, n }: { name: string; n: number },
): Answer | undefined {
  const attribute = entity?.get(name)
  const past = repeated(model, id, name, n)
  if (attribute === undefined || past === undefined) return undefined
  const isKnown =
    attribute.known.has(identityOf(past.t, past.value)) ||
    isSame(attribute, { ...past, unit: attribute.unit })
  if (!isKnown) {
    if (attribute.t === undefined || past.t >= attribute.t) return undefined
    observe(model, id, entity!, past)
  }
  return 'ok'
}

/** The n-th identity of an attribute, modulo their number. */
export function repeated(model: Model, id: string, name: string, n: number): Observed | undefined {
  const all = [...(model.history.get(id)?.values() ?? [])].filter((one) => one.name === name)
  return all[n % all.length]
}

function remember(model: Model, id: string, name: string, { value, t, unit }: Given): void {
  if (t === undefined) return
  const key = `${name} ${identityOf(t, value)}`
  const history = model.history.get(id)!
  const units = history.get(key)?.units ?? new Set()
  history.set(key, { name, t, value, units: units.add(unit) })
}

const fresh = (given: Given): Attribute => ({ ...given, known: new Set() })

function isSame(a: Given | undefined, b: Given): boolean {
  return (
    a !== undefined && a.t === b.t && a.unit === b.unit && JSON.stringify(a.value) === JSON.stringify(b.value)
  )
}
