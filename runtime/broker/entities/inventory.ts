/**
 * Lists of entity types and attributes (GS CIM 009, 5.7.5 to 5.7.10), derived from the shapes of entities. No
 * document is read, and current values in memory have no effect. Names are canonical, and lists are sorted by
 * name.
 */

import type { Names } from '#broker/commit/interned-names.ts'
import type { Shapes } from '#store/entities/entity-shape.ts'

export interface AttributeUse {
  readonly name: string
  /** Kinds of the attribute's instances, such as Property. */
  readonly kinds: readonly string[]
  /** Number of entities that have it. */
  readonly entities: number
  /** The types of these entities. */
  readonly types: readonly string[]
}

export interface TypeUse {
  readonly name: string
  /** Number of entities with this type, also among others. */
  readonly entities: number
  /** Attributes of these entities; their `entities` and `types` count only within this type. */
  readonly attributes: readonly AttributeUse[]
}

export interface Inventory {
  types(): readonly TypeUse[]
  attributes(): readonly AttributeUse[]
}

/** The inventory of one tenant, and the canonical names that its types and attributes have or had. */
export interface OwnInventory extends Inventory, Pick<Names, 'isKnown' | 'alike'> {}

/** A shape with its names, each attribute once. */
interface NamedShape {
  readonly types: readonly string[]
  readonly attributes: ReadonlyMap<string, readonly string[]>
  readonly entities: number
}

export function createInventory({ shapes, names }: { shapes: Shapes; names: Names }): OwnInventory {
  const named = (): readonly NamedShape[] => {
    const text = (i: number): string => names.text(i)!
    return shapes.all().map(({ types, attributes, entities }) => {
      const kinds = new Map<string, string[]>()
      for (const [name, kind] of attributes)
        kinds.set(text(name), [...(kinds.get(text(name)) ?? []), text(kind)])
      return { types: types.map(text), attributes: kinds, entities }
    })
  }
  return Object.freeze({
    types() {
      const byType = new Map<string, NamedShape[]>()
      for (const shape of named()) {
        for (const type of shape.types) byType.set(type, [...(byType.get(type) ?? []), shape])
      }
      return [...byType].sort(byName).map(([name, having]) => ({
        name,
        entities: having.reduce((sum, { entities }) => sum + entities, 0),
        attributes: attributesOf(having),
      }))
    },
    attributes: () => attributesOf(named()),
    isKnown: names.isKnown,
    alike: names.alike,
  } satisfies OwnInventory)
}

function attributesOf(shapes: readonly NamedShape[]): readonly AttributeUse[] {
  const uses = new Map<string, { kinds: Set<string>; types: Set<string>; entities: number }>()
  for (const { types, attributes, entities } of shapes) {
    for (const [name, kinds] of attributes) {
      const use = uses.get(name) ?? { kinds: new Set(), types: new Set(), entities: 0 }
      uses.set(name, use)
      for (const kind of kinds) use.kinds.add(kind)
      for (const type of types) use.types.add(type)
      use.entities += entities
    }
  }
  return [...uses].sort(byName).map(([name, { kinds, types, entities }]) => ({
    name,
    kinds: [...kinds].sort(),
    types: [...types].sort(),
    entities,
  }))
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  a < b ? -1 : a > b ? 1 : 0
