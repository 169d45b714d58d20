/**
 * Rows derived from a document and written with it: index rows by type, attribute, value and place, its
 * shape, and its earliest expiry. All of them follow from the document; names get their numbers here.
 */

import type { Names } from '#broker/commit/interned-names.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import { firstExpiryOf } from '#ngsi-ld/entity/expiry.ts'
import type { IndexRows } from '#store/entities/entity-index.ts'
import type { Entities } from '#store/entities/entity-rows.ts'
import { hasShapeOf, shapeText } from '#store/entities/entity-shape.ts'

/** An entity before and after a change; absent where it does not exist. */
interface Reshaping {
  readonly before?: Entity
  readonly after?: Entity
  /** True if the change only removed parts. */
  readonly isRest?: boolean
}

export function createDerivedRows({
  entities,
  names,
}: {
  readonly entities: Entities
  readonly names: Names
}) {
  let lastPlace = entities.lastPlace()

  return Object.freeze({
    writeExpiry(stage: Stage, rid: number, before: Entity | undefined, after: Entity | undefined): void {
      const old = before && firstExpiryOf(before)
      const next = after && firstExpiryOf(after)
      if (old === next) return
      if (old !== undefined) stage.write('expiry.delete', old, rid)
      if (next !== undefined) stage.write('expiry.insert', next, rid)
      stage.published(entities.renewExpiry)
    },

    writeIndex(stage: Stage, rid: number, add: IndexRows, drop: IndexRows): void {
      const intern = (text: string): number => names.intern(stage, text)
      if (add.types.length + drop.types.length > 0) stage.published(entities.pages.forget)
      if (add.places.length + drop.places.length > 0) stage.published(entities.renewPlaces)
      stage.published(() => entities.columns.renew(rid, { add, remove: drop }, names.find))
      for (const type of drop.types) stage.write('type.delete', intern(type), rid)
      for (const name of drop.attributes) stage.write('attribute.delete', intern(name), rid)
      for (const [name, kind, value] of drop.scalars)
        stage.write('scalar.delete', intern(name), kind, value, rid)
      for (const name of new Set(drop.places.map((place) => place.name))) {
        stage.write('place.delete', rid, intern(name))
        stage.write('place.forget', rid, intern(name))
      }
      for (const type of add.types) stage.write('type.insert', intern(type), rid)
      for (const name of add.attributes) stage.write('attribute.insert', intern(name), rid)
      for (const [name, kind, value] of add.scalars)
        stage.write('scalar.insert', intern(name), kind, value, rid)
      for (const { name, box, lon, lat } of add.places) {
        const i = ++lastPlace
        const { x0, x1, y0, y1 } = box
        stage.write('place.insert', i, x0, x1, y0, y1, rid, intern(name), lon ?? null, lat ?? null)
        stage.write('place.note', rid, intern(name), i)
      }
    },

    /** Values of live streams never change a shape, so observations write none. */
    writeShape(stage: Stage, rid: number, { before, after, isRest = false }: Reshaping): void {
      if (before !== undefined && after !== undefined && hasShapeOf(before, after)) return
      const intern = (text: string): number => names.intern(stage, text)
      if (before !== undefined) stage.write('shape.delete', intern(shapeText(before, intern)), rid)
      if (after === undefined) return
      const text = shapeText(after, intern)
      stage.write('shape.insert', isRest ? names.internRest(stage, text) : intern(text), rid)
    },
  })
}
