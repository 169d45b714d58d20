/**
 * Creates new versions of entity documents. Loads the document as a work sees it: stored, plus what earlier
 * works of the group staged, plus live values. Stages the new version with its index rows, its log record and
 * its effects on streams. All writes of documents are here. A document includes all values up to its log
 * number.
 */

import { limits } from '#base/limits/limits.ts'
import { assert, GatewayError } from '#base/register/errors.ts'
import type { Names } from '#broker/commit/interned-names.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { attributeNames, type Entity } from '#ngsi-ld/entity/entity.ts'
import { type AttributeChange, changesBetween } from '#ngsi-ld/entity/entity-draft.ts'
import { shapeOf } from '#ngsi-ld/entity/merge.ts'
import type { WrittenTimes } from '#ngsi-ld/federation/uplink-statements.ts'
import { viaFrom } from '#ngsi-ld/federation/via.ts'
import type { SystemTimes } from '#ngsi-ld/representation/representation.ts'
import { dateTimeToMs } from '#ngsi-ld/values/datetime.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type StoredTimes, storedTimes, timesText } from '#store/entities/attribute-times.ts'
import { diffIndexRows, type IndexRows, indexRows } from '#store/entities/entity-index.ts'
import type { Entities } from '#store/entities/entity-rows.ts'
import type { EntityRow } from '#store/entities/page-rows.ts'
import { createDerivedRows } from './derived-rows.ts'
import { isSameTypes, scopeChange, timesAfter, viaOfDeleted, writtenAt } from './document-changes.ts'
import { overlayTimes, overlayValue, timesKey } from './entity-view.ts'
import type { ChangeOrigin } from './stored-entity.ts'
import { type Streams, typesOf } from './streams.ts'

/** An entity as a work sees it while it is decided. */
export interface DocumentDraft {
  readonly rid: number
  readonly id: string
  /** With all values staged so far. */
  readonly entity: Entity
  /** The document from which the index rows in the database (or earlier in this group) were derived. */
  readonly indexed: Entity
  /** Log number that `entity` includes, without values staged since. */
  readonly number: number
  /** Log number of the last change, with values staged since. */
  readonly version: number
  readonly created: number
  readonly modified: number
  readonly times: StoredTimes
}

/** A change of an entity, for the log, the matcher and followers. */
export interface EntityChange {
  readonly kind: 'created' | 'updated' | 'deleted'
  readonly number: number
  readonly rid: number
  readonly id: string
  readonly before: Entity | undefined
  readonly after: Entity | undefined
  readonly changes: readonly AttributeChange[]
  readonly by: ChangeOrigin
}

export interface DocumentsPorts {
  readonly entities: Entities
  readonly names: Names
  readonly streams: Streams
  readonly noteOrigins: (draft: DocumentDraft, changes: readonly AttributeChange[], by: ChangeOrigin) => void
  /** Called for each change while it is decided, to match subscriptions. */
  readonly onChange: (stage: Stage, change: EntityChange, times: SystemTimes) => void
  /** Called for each deleted entity, to delete what belongs to it. */
  readonly onRemoved?: ((stage: Stage, rid: number) => void) | undefined
}

export function createDocumentDrafts(ports: DocumentsPorts) {
  const { entities, names, streams } = ports
  const { writeExpiry, writeIndex, writeShape } = createDerivedRows({ entities, names })
  let lastRid = entities.lastRid()
  let count = entities.count()

  function find(stage: Stage, id: string): DocumentDraft | undefined {
    const staged = stage.scratch.get(`entity ${id}`) as DocumentDraft | null | undefined
    if (staged !== undefined) return staged === null ? undefined : withStagedValues(staged)
    const row = entities.byId(id)
    return row === undefined ? undefined : draftOf(row)
  }

  function draftOf(row: EntityRow): DocumentDraft {
    const indexed = JSON.parse(row.doc) as Entity
    return withStagedValues({
      rid: row.rid,
      id: row.id,
      entity: indexed,
      indexed,
      number: row.n,
      version: row.n,
      created: row.created,
      modified: row.modified,
      times: storedTimes(row),
    })
  }

  function withStagedValues(draft: DocumentDraft): DocumentDraft {
    const newer =
      streams
        .liveOf(draft.rid)
        ?.streams.filter((stream) => !stream.dropped && stream.nextNumber > draft.number) ?? []
    if (newer.length === 0) return draft
    const entity = { ...draft.entity }
    const times = { ...draft.times }
    let { modified, version } = draft
    for (const stream of newer) {
      overlayValue(entity, stream, stream.nextTime, stream.nextValue)
      overlayTimes(times, stream, { modified: stream.nextModified, via: stream.nextVia })
      modified = Math.max(modified, stream.nextModified)
      version = Math.max(version, stream.nextNumber)
    }
    return { ...draft, entity, times, modified, version }
  }

  function create(stage: Stage, entity: Entity, by: ChangeOrigin, written?: WrittenTimes): DocumentDraft {
    if (find(stage, entity.id) !== undefined) {
      throw new GatewayError('ngsi-ld.already-exists', `the entity ${entity.id} already exists`)
    }
    const doc = documentText(entity)
    const rid = ++lastRid
    const changes = writtenAt(changesBetween(undefined, entity), written)
    const via = viaFrom(by)
    const born: StoredTimes = via === undefined ? {} : { '': [stage.at, stage.at, via] }
    const times = timesAfter(born, changes, { at: stage.at, via })
    const number = record(stage, { kind: 'created', rid, entity, changes, by, scope: entity.scope })
    const draft: DocumentDraft = {
      rid,
      id: entity.id,
      entity,
      indexed: entity,
      number,
      version: number,
      created: stage.at,
      modified: stage.at,
      times,
    }
    count++
    stage.undone(() => count--)
    const sys = timesText(stage.at, times)
    stage.write('entity.insert', rid, entity.id, number, stage.at, stage.at, sys, doc)
    writeIndex(stage, rid, indexRows(entity), emptyRows)
    writeExpiry(stage, rid, undefined, entity)
    writeShape(stage, rid, { after: entity })
    stage.scratch.set(`entity ${entity.id}`, draft)
    ports.onChange(
      stage,
      { kind: 'created', number, rid, id: entity.id, before: undefined, after: entity, changes, by },
      timesOf(draft),
    )
    return draft
  }

  /** Stages a new version of an entity. `changes` are the instances that changed. */
  function update(
    stage: Stage,
    draft: DocumentDraft,
    entity: Entity,
    changes: readonly AttributeChange[],
    by: ChangeOrigin,
  ): DocumentDraft {
    ports.noteOrigins(draft, changes, by)
    const times = timesAfter(draft.times, changes, { at: stage.at, via: viaFrom(by) })
    checkAttributeCount(draft.entity, entity)
    const doc = documentText(entity)
    const number = record(stage, {
      kind: 'updated',
      rid: draft.rid,
      entity,
      changes,
      by,
      scope: scopeChange(draft.entity.scope, entity.scope),
      isRetyped: !isSameTypes(draft.entity.type, entity.type),
      times: draft.times,
    })
    const changed = { entity, indexed: entity, number, version: number, modified: stage.at, times }
    const next: DocumentDraft = { ...draft, ...changed }
    writeRow(stage, next, doc)
    writeExpiry(stage, draft.rid, draft.indexed, entity)
    const difference = diffIndexRows(draft.indexed, entity)
    writeIndex(stage, draft.rid, difference.add, difference.remove)
    const isRest = difference.add.types.length === 0 && changes.every(({ after }) => after === undefined)
    writeShape(stage, draft.rid, { before: draft.indexed, after: entity, isRest })
    stage.scratch.set(`entity ${draft.id}`, next)
    streams.documentWritten(stage, draft.rid, number)
    if (entity.type !== draft.entity.type) streams.retyped(stage, draft.rid, typesOf(entity))
    for (const change of changes) applyToStream(stage, next, change, number)
    ports.onChange(
      stage,
      {
        kind: 'updated',
        number,
        rid: draft.rid,
        id: draft.id,
        before: draft.entity,
        after: entity,
        changes,
        by,
      },
      // A notification of a deleted attribute contains the times it had.
      timesOf(
        changes.some(({ after }) => after === undefined)
          ? { ...next, times: { ...draft.times, ...times } }
          : next,
      ),
    )
    return next
  }

  function remove(stage: Stage, draft: DocumentDraft, by: ChangeOrigin): void {
    const changes = changesBetween(draft.entity, undefined)
    const scope = scopeChange(draft.entity.scope, undefined)
    const number = record(stage, {
      kind: 'deleted',
      rid: draft.rid,
      entity: draft.entity,
      changes,
      by,
      scope,
      times: draft.times,
    })
    count--
    stage.undone(() => count++)
    stage.write(
      'tombstone.insert',
      number,
      draft.id,
      draft.rid,
      stage.at,
      JSON.stringify(draft.entity),
      draft.times['']?.[2] ?? null,
      draft.created,
    )
    stage.write('entity.delete', draft.rid)
    stage.published(() => entities.forget(draft.id))
    writeIndex(stage, draft.rid, emptyRows, indexRows(draft.indexed))
    writeExpiry(stage, draft.rid, draft.indexed, undefined)
    writeShape(stage, draft.rid, { before: draft.indexed })
    streams.retireEntity(stage, draft.rid)
    ports.onRemoved?.(stage, draft.rid)
    stage.scratch.set(`entity ${draft.id}`, null)
    ports.onChange(
      stage,
      {
        kind: 'deleted',
        number,
        rid: draft.rid,
        id: draft.id,
        before: draft.entity,
        after: undefined,
        changes,
        by,
      },
      timesOf(draft),
    )
  }

  /**
   * Writes live values of an entity into its document without a new log number, since the entity did not
   * change. Skips documents that the group already writes or deletes, unless `amended` changes the text.
   */
  function writeBack(stage: Stage, rid: number, amended?: (text: string) => string): boolean {
    const row = entities.byRid(rid)
    if (row === undefined || (amended === undefined && stage.scratch.has(`entity ${row.id}`))) return false
    const draft = amended === undefined ? draftOf(row) : find(stage, row.id)
    if (draft === undefined) return false
    const live = streams.liveOf(rid)
    const number = Math.max(row.n, ...(live?.streams.map((stream) => stream.nextNumber) ?? []))
    const text = JSON.stringify(draft.entity)
    const doc = amended?.(text) ?? text
    if (number === row.n && doc === text) return false
    const entity = doc === text ? draft.entity : (JSON.parse(doc) as Entity)
    writeRow(stage, { ...draft, number }, doc)
    const difference = diffIndexRows(draft.indexed, entity)
    writeIndex(stage, rid, difference.add, difference.remove)
    streams.documentWritten(stage, rid, number)
    return true
  }

  function writeRow(stage: Stage, draft: DocumentDraft, doc: string): void {
    const { rid, id, number, created, modified } = draft
    const sys = timesText(created, draft.times)
    stage.write('entity.update', number, modified, sys, doc, rid)
    stage.published(() => entities.renew({ rid, id, n: number, created, modified, sys, doc }))
  }

  function record(
    stage: Stage,
    what: Pick<EntityChange, 'kind' | 'rid' | 'changes' | 'by'> & {
      readonly entity: Entity
      /** The scopes after the change, if it touched them; null if it removed them. */
      readonly scope?: Entity['scope'] | null
      /** Whether the change replaced the types or added one. */
      readonly isRetyped?: boolean
      /** Before the change. */
      readonly times?: StoredTimes
    },
  ): number {
    const { kind, rid, entity, changes, by, times } = what
    const instances = changes.map(({ name, datasetId, before, after, at }) =>
      after === undefined
        ? [name, datasetId ?? '', null, before?.type]
        : [name, datasetId ?? '', after, ...(at === undefined ? [] : [after.type, at])],
    )
    const { scope } = what
    const retyped = what.isRetyped === true || undefined
    const via = times === undefined ? undefined : viaOfDeleted(times, changes)
    const { id, type } = entity
    return streams.record(stage, rid, { kind, id, by, type, instances, scope, retyped, via })
  }

  /**
   * Applies an entity write to the stream of an observed attribute: sets its current value or shape, or ends
   * it.
   */
  function applyToStream(stage: Stage, draft: DocumentDraft, change: AttributeChange, number: number): void {
    const stream = streams.existing(stage, draft, change.name, change.datasetId ?? '')
    if (stream === undefined) return
    const { after } = change
    // A Relationship that replaces a Property is another attribute under the same name.
    if (after?.value === undefined || kindOf(after).member !== 'value') {
      streams.retire(stage, stream)
      return
    }
    streams.overwrite(stage, stream, {
      shape: shapeOf(after),
      value: after.value,
      time: dateTimeToMs(after.observedAt ?? '') ?? Number.NEGATIVE_INFINITY,
      number,
      via: draft.times[timesKey(change.name, change.datasetId ?? '')]?.[2],
    })
  }

  return Object.freeze({ find, create, update, remove, writeBack, count: () => count })
}

export type DocumentDrafts = ReturnType<typeof createDocumentDrafts>

const emptyRows: IndexRows = { types: [], attributes: [], scalars: [], places: [] }

export function timesOf(draft: DocumentDraft): SystemTimes {
  return { created: draft.created, modified: draft.modified, attributes: draft.times }
}

/**
 * An entity that exceeds a lowered ceiling may still be changed, but gets no further attributes. @throws
 * ngsi-ld.bad-request-data
 */
function checkAttributeCount(before: Entity, after: Entity): void {
  const [most, count] = [limits.attributesPerEntityMax.value, attributeNames(after).length]
  if (count > most && count > attributeNames(before).length)
    throw badRequestData(`the entity ${after.id} would have ${count} attributes; the maximum is ${most}`)
}

/** @throws http.body-too-large */
export function documentText(entity: Entity): string {
  const text = JSON.stringify(entity)
  if (text.length > limits.entityBytesMax.value) {
    throw new GatewayError(
      'http.body-too-large',
      `the entity ${entity.id} would exceed ${limits.entityBytesMax.value} bytes`,
    )
  }
  assert(text.startsWith('{"id":'), 'documents begin with their id')
  return text
}
