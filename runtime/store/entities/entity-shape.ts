/**
 * The shape of an entity: its types and its attributes with their kinds. A shape is stored as a short text of
 * interned names and shared by all similar entities. The lists of existing types and attributes follow from
 * the shapes alone, without reading any document (GS CIM 009, 5.7.5 to 5.7.10).
 */
import { attributeNames, type Entity, instancesOf } from '#ngsi-ld/entity/entity.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import type { Database } from '#store/file/database.ts'

/** A shape and the number of entities that have it. Names are interned. */
export interface ShapeCount {
  readonly types: readonly number[]
  /** An attribute with instances of several kinds is listed once per kind. */
  readonly attributes: readonly (readonly [name: number, kind: number])[]
  readonly entities: number
}

/** "=type,type|attribute.kind,attribute.kind", each list ascending. */
export function shapeText(entity: Entity, intern: (name: string) => number): string {
  const types = [...new Set(listOf(entity.type))].map(intern)
  const attributes = attributeNames(entity).map((name) => {
    const kinds = new Set(instancesOf(entity, name).map(({ type }) => intern(type)))
    return [intern(name), [...kinds].sort(ascending)] as const
  })
  const parts = attributes
    .sort(([a], [b]) => a - b)
    .flatMap(([name, kinds]) => kinds.map((kind) => `${name}.${kind}`))
  return `=${types.sort(ascending).join()}|${parts.join()}`
}

/** True when two versions of an entity have the same shape, without building it. */
export function hasShapeOf(before: Entity, after: Entity): boolean {
  if (before.type !== after.type && String(before.type) !== String(after.type)) return false
  const names = Object.keys(after)
  if (names.length !== Object.keys(before).length) return false
  return names.every((name) => {
    if (before[name] === after[name]) return true
    return Object.hasOwn(before, name) && kindsOf(before, name) === kindsOf(after, name)
  })
}

const kindsOf = (entity: Entity, name: string): string =>
  [...new Set(instancesOf(entity, name).map(({ type }) => type))].join()

const ascending = (a: number, b: number): number => a - b

/** Read access to the existing shapes. */
export function createShapes(database: Database) {
  const next = database
    .prepare<[number], number | null>('SELECT min(shape) FROM entity_shape WHERE shape > ?')
    .pluck()
  const count = database
    .prepare<[number], number>('SELECT count(*) FROM entity_shape WHERE shape = ?')
    .pluck()
  const text = database.prepare<[number], string>('SELECT text FROM name WHERE i = ?').pluck()
  const numbers = (list: string): readonly number[] => (list === '' ? [] : list.split(',').map(Number))
  const read = database.transaction((): readonly ShapeCount[] => {
    const found: ShapeCount[] = []
    for (let shape = next.get(0); typeof shape === 'number'; shape = next.get(shape)) {
      const [types = '', attributes = ''] = text.get(shape)!.slice(1).split('|')
      found.push({
        types: numbers(types),
        attributes: attributes === '' ? [] : attributes.split(',').map(pairOf),
        entities: count.get(shape)!,
      })
    }
    return found
  })
  return Object.freeze({ all: (): readonly ShapeCount[] => read() })
}

export type Shapes = ReturnType<typeof createShapes>

function pairOf(text: string): readonly [number, number] {
  const dot = text.indexOf('.')
  return [Number(text.slice(0, dot)), Number(text.slice(dot + 1))]
}
