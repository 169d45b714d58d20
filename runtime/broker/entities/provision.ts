/**
 * Use-cases that write entities (GS CIM 009, 5.6). Each is one work at the door: load the entity, compute the
 * result with the pure merge rules, and stage it. A write that only changes values of observed attributes
 * becomes observations and never writes the document.
 */
import { nextTurn } from '#base/load/yielding.ts'
import { collectDiscardedBetweenMarkings, noteDiscarded } from '#base/process/garbage-collection.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { isSameTypes, writtenAt } from '#broker/state/document-changes.ts'
import {
  type DocumentDraft,
  type DocumentDrafts,
  documentText,
  timesOf,
} from '#broker/state/document-drafts.ts'
import type { EntityQuery, QueryPage } from '#broker/state/entity-queries.ts'
import type { ChangeOrigin, EntityView } from '#broker/state/stored-entity.ts'
import type { Json } from '#contract/pipeline.ts'
import { toIri } from '#ngsi-ld/context/core-context.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import type { Entity, Fragment } from '#ngsi-ld/entity/entity.ts'
import type { AttributeChange, Merged } from '#ngsi-ld/entity/entity-draft.ts'
import { holdsNull } from '#ngsi-ld/entity/instance-merge.ts'
import {
  appendAttributes,
  deleteAttribute,
  mergeEntity,
  observationOf,
  reduceEntity,
  replaceAttribute,
  replaceEntity,
  updateAttributes,
  updatePartially,
} from '#ngsi-ld/entity/merge.ts'
import { mirroredIn, mirrorName } from '#ngsi-ld/entity/mirror.ts'
import { viaFrom } from '#ngsi-ld/federation/via.ts'
import { matchesType } from '#ngsi-ld/query/entity-selector.ts'
import { compileSearch } from '#ngsi-ld/query/search.ts'
import { listOf } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { createBatches, type ItemOutcome, sliceSize } from './batches.ts'
import type {
  BatchItemError,
  BatchResult,
  Precondition,
  Provision,
  PurgeOptions,
  UpdateResult,
  UpsertOptions,
  WriteOptions,
} from './entity-requests.ts'
import type { Observer } from './observer.ts'

export interface ProvisionPorts {
  readonly door: Door
  readonly documents: DocumentDrafts
  readonly observer: Observer
  readonly retrieve: (id: string) => EntityView | undefined
  readonly query: (query: EntityQuery) => QueryPage | Promise<QueryPage>
}

export function createProvision({ door, documents, observer, retrieve, query }: ProvisionPorts): Provision {
  const { commit, batch } = createBatches(door)

  function found(stage: Stage, id: string, when: Precondition = {}): DocumentDraft {
    const draft = documents.find(stage, id)
    if (draft === undefined) throw notFound(`the entity ${id} does not exist`)
    checkPrecondition(draft, when)
    return draft
  }

  /** Stages the result of a merge: nothing, observations, or a new document. */
  function apply(given: Stage, draft: DocumentDraft, merged: Merged, by: ChangeOrigin): UpdateResult {
    const stage = stageOf(inOrder(given, draft), by)
    const changes = merged.changes.filter(isEffective)
    const answer: UpdateResult = { updated: merged.updated, notUpdated: merged.notUpdated }
    const otherwiseSame = isSameBesideAttributes(merged.entity, draft.entity)
    // Writing an unchanged value is no change: it writes nothing to flash and notifies nobody.
    if (otherwiseSame && changes.length === 0) return answer
    // A client that repeats the time attribute of a value unchanged does not want it to follow the value.
    const keepsTime = merged.changes.some((one) => one.name === mirrorName && !isEffective(one))
    const observations = otherwiseSame && !keepsTime ? observationsOf(changes) : undefined
    if (observations !== undefined) {
      // A number needs no more space than the previous one; a text or an object may.
      if (observations.some(({ value }) => typeof value !== 'number')) documentText(merged.entity)
      for (const { change, value, time } of observations) {
        observer.observe(stage, draft, change.name, change.datasetId ?? '', time, value)
      }
    } else if (!otherwiseSame || !observesMirrored(stage, draft, { entity: merged.entity, changes })) {
      documents.update(stage, draft, merged.entity, changes, by)
    }
    return answer
  }

  /**
   * Observes a value that arrived from another gateway together with its time in a separate attribute, as it
   * was observed there. Returns false, and stages nothing, for other changes.
   */
  function observesMirrored(
    stage: Stage,
    draft: DocumentDraft,
    { entity, changes }: Pick<Merged, 'entity' | 'changes'>,
  ): boolean {
    const found = stage.via === undefined ? undefined : mirroredIn(changes)
    const [observation] = found === undefined ? [] : (observationsOf([found.observed]) ?? [])
    if (found === undefined || observation === undefined) return false
    const { change, value, time } = observation
    if (typeof value !== 'number') documentText(entity)
    const dataset = change.datasetId ?? ''
    return observer.observeMirrored(stage, draft, {
      name: change.name,
      dataset,
      mirror: found.mirror,
      time,
      value,
    })
  }

  function change(
    id: string,
    given: unknown,
    { by, when }: WriteOptions,
    merge: (entity: Entity) => Merged,
  ): Promise<UpdateResult> {
    return commit(given, (stage) => {
      const draft = found(stage, id, when)
      return apply(stage, draft, merge(draft.entity), by)
    })
  }

  const upsertOne = (stage: Stage, entity: Entity, { update, by, stated }: UpsertOptions): ItemOutcome => {
    const draft = documents.find(stage, entity.id)
    const written = stated?.written(entity)
    if (draft === undefined) {
      if (update && holdsNull(entity as Json))
        throw badRequestData(`the entity ${entity.id} does not exist, so nothing can be deleted from it`)
      documents.create(stage, entity, by, written)
      return 'created'
    }
    const merged = update
      ? appendAttributes(draft.entity, fragmentOf(entity), { noOverwrite: false })
      : replaceEntity(draft.entity, entity)
    const { type } = stated?.types === true ? entity : merged.entity
    const after = isSameTypes(merged.entity.type, type) ? merged.entity : { ...merged.entity, type }
    apply(stage, draft, { ...merged, entity: after, changes: writtenAt(merged.changes, written) }, by)
    return 'done'
  }

  /** Purges page by page; each entity is matched again when it is written. */
  async function purge(wanted: EntityQuery, { keep, drop, by }: PurgeOptions): Promise<BatchResult> {
    const isSelected = compileSearch(wanted, retrieve)
    const result = { success: [] as string[], created: [], errors: [] as BatchItemError[] }
    // Only ids are held while a page is written, because its documents may be large.
    const pageAfter = async (position: string | undefined) => {
      const page = await query({
        ...wanted,
        order: undefined,
        limit: sliceSize,
        offset: 0,
        count: false,
        after: position,
      })
      for (const view of page.entities) noteDiscarded(view.text().length)
      return { ids: page.entities.map(({ id }) => id), next: page.more ? page.next : undefined }
    }
    let after: string | undefined
    do {
      const { ids, next } = await pageAfter(after)
      await nextTurn()
      await collectDiscardedBetweenMarkings()
      const { success, errors } = await batch(ids, String, (stage, id) => {
        const draft = documents.find(stage, id)
        if (draft === undefined || !isSelected(draft.entity, timesOf(draft))) return 'done'
        if (keep === undefined && drop === undefined) documents.remove(stage, draft, by)
        else apply(stage, draft, reduceEntity(draft.entity, { keep, drop }), by)
        return 'done'
      })
      result.success.push(...success)
      result.errors.push(...errors)
      after = next
    } while (after !== undefined)
    return result
  }

  return Object.freeze({
    purge,
    create: (entity, by) =>
      commit(entity, (stage) => {
        documents.create(stage, entity, by)
      }),
    append: (id, fragment, { noOverwrite, ...options }) =>
      change(id, fragment, options, (entity) => appendAttributes(entity, fragment, { noOverwrite })),
    update: (id, fragment, { appendMissing, ...options }) =>
      change(id, fragment, options, (entity) => updateAttributes(entity, fragment, { appendMissing })),
    merge: async (id, fragment, { merge, ...options }) => {
      await change(id, fragment, options, (entity) => mergeEntity(entity, fragment, merge))
    },
    replace: async (replacement, options) => {
      await change(replacement.id, replacement, options, (entity) => replaceEntity(entity, replacement))
    },
    partial: async (id, name, instance, options) => {
      await change(id, instance, options, (entity) =>
        updatePartially(entity, name, instance as Record<string, Json>),
      )
    },
    replaceAttribute: async (id, name, attribute, options) => {
      await change(id, attribute, options, (entity) =>
        replaceAttribute(entity, name, listOf<AttributeInstance>(attribute)),
      )
    },
    deleteAttribute: async (id, name, { datasetId, deleteAll, ...options }) => {
      await change(id, name, options, (entity) => deleteAttribute(entity, name, { datasetId, deleteAll }))
    },
    remove: (id, by, when) =>
      commit(id, (stage) => documents.remove(stage, found(stage, id, when), by), true),
    batchCreate: (entities, by) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => {
          documents.create(stage, entity, by)
          return 'created'
        },
      ),
    batchUpsert: (entities, options) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => upsertOne(stage, entity, options),
      ),
    batchUpdate: (entities, { noOverwrite, by }) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => {
          const draft = found(stage, entity.id)
          const merged = appendAttributes(draft.entity, fragmentOf(entity), { noOverwrite })
          apply(stage, draft, merged, by)
          if (merged.notUpdated.length > 0) {
            const names = merged.notUpdated.map(({ attributeName }) => toIri(attributeName))
            return new GatewayError('ngsi-ld.bad-request-data', `not updated: ${names.join(', ')}`, { names })
          }
          return 'done'
        },
      ),
    batchMerge: (entities, by) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => {
          const draft = found(stage, entity.id)
          apply(stage, draft, mergeEntity(draft.entity, fragmentOf(entity)), by)
          return 'done'
        },
      ),
    batchDelete: (ids, by) =>
      batch(
        ids,
        (id) => id,
        (stage, id) => {
          const draft = found(stage, id)
          documents.remove(inOrder(stage, draft), draft, by)
          return 'done'
        },
      ),
  } satisfies Provision)
}

/** The stage with the Via chain of this origin. */
export const stageOf = (stage: Stage, by: ChangeOrigin): Stage => {
  const via = viaFrom(by)
  return via === undefined ? stage : stage.from(via)
}

/**
 * Keeps commit times of an entity ascending: a batch uses the time of its first item unless the entity
 * changed since.
 */
const inOrder = (stage: Stage, { modified }: DocumentDraft): Stage =>
  stage.at < modified ? stage.dated(modified) : stage

/** @throws ngsi-ld.not-found for an entity of other types, http.precondition-failed for another version. */
function checkPrecondition({ entity, version }: DocumentDraft, { selection, versions }: Precondition): void {
  if (selection !== undefined && !matchesType(selection, entity.type)) {
    throw notFound(`the entity ${entity.id} does not have the required types`)
  }
  if (versions !== undefined && !versions.has(version)) {
    throw new GatewayError(
      'http.precondition-failed',
      `the entity ${entity.id} has changed since the version in the precondition`,
    )
  }
}

/** Whether types, scopes and expiry are equal. */
export const isSameBesideAttributes = (a: Entity, b: Entity): boolean =>
  isSame(a.type, b.type) && isSame(a.scope, b.scope) && a.expiresAt === b.expiresAt

const isSame = (a: string | readonly string[] | undefined, b: typeof a): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))

/** The attributes of an entity as a fragment, with types and scopes. */
function fragmentOf(entity: Entity): Fragment {
  const { id: _id, ...fragment } = entity
  return fragment
}

export interface ObservedChange {
  readonly change: AttributeChange
  readonly value: Json
  readonly time: number
}

/** All changes as observations, or undefined if one of them is not an observation. */
export function observationsOf(changes: readonly AttributeChange[]): ObservedChange[] | undefined {
  const observed: ObservedChange[] = []
  for (const change of changes) {
    const observation = observationOf(change)
    if (observation === undefined) return undefined
    observed.push({ change, value: observation.value, time: observation.observedAtMs })
  }
  return observed
}

function isEffective({ before, after }: AttributeChange): boolean {
  return before === undefined || after === undefined || JSON.stringify(before) !== JSON.stringify(after)
}
