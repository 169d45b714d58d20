/**
 * Use-cases that write entities (GS CIM 009, 5.6). Each is one work at the door: load what is there, let the pure
 * merge rules say what it becomes, stage that. A write whose whole effect is new values of observed attributes
 * becomes observations and never touches the document.
 */
import { GatewayError } from '#base/errors.ts'
import { footprintOf } from '#base/footprint.ts'
import { limits } from '#base/limits.ts'
import type { Json } from '#contract/pipeline.ts'
import type { AttributeInstance, Entity, Fragment } from '#ngsi-ld/entity.ts'
import type { AttributeChange, Merged } from '#ngsi-ld/entity-draft.ts'
import { listOf } from '#ngsi-ld/json.ts'
import {
  appendAttributes,
  deleteAttribute,
  mergeEntity,
  observationOf,
  replaceAttribute,
  replaceEntity,
  updateAttributes,
  updatePartially,
} from '#ngsi-ld/merge.ts'
import { notFound } from '#ngsi-ld/problem.ts'
import { matchesType } from '#ngsi-ld/selection.ts'
import { type Documents, type Draft, documentText } from './documents.ts'
import type { Door } from './door.ts'
import type { Observer } from './observer.ts'
import type { Stage } from './stage.ts'
import { createTurns } from './turns.ts'
import type {
  BatchItemError,
  BatchResult,
  Origin,
  Precondition,
  Provision,
  UpdateResult,
  WriteOptions,
} from './types.ts'

export interface ProvisionPorts {
  readonly door: Door
  readonly documents: Documents
  readonly observer: Observer
}

/** Big batches go through the door in slices, so that others get their turn in between. */
const sliceSize = 256
/** What a waiting work holds beside what it was given. */
const workBytes = 256

export function createProvision({ door, documents, observer }: ProvisionPorts): Provision {
  const takeTurn = createTurns(limits.batchSlicesMax.value)

  function found(stage: Stage, id: string, when: Precondition = {}): Draft {
    const draft = documents.find(stage, id)
    if (draft === undefined) throw notFound(`the entity ${id} does not exist`)
    checkPrecondition(draft, when)
    return draft
  }

  /** Stages what a merge made: nothing, observations, or a new document. */
  function apply(stage: Stage, draft: Draft, merged: Merged, by: Origin): UpdateResult {
    const changes = merged.changes.filter(isEffective)
    const answer: UpdateResult = { updated: merged.updated, notUpdated: merged.notUpdated }
    const otherwiseSame = isSameBesideAttributes(merged.entity, draft.entity)
    // Writing what is there already is no change: it costs no flash and tells nobody.
    if (otherwiseSame && changes.length === 0) return answer
    const observations = otherwiseSame ? observationsOf(changes) : undefined
    if (observations !== undefined) {
      // A number takes no more room than the one before; a text or an object may.
      if (observations.some(({ value }) => typeof value !== 'number')) documentText(merged.entity)
      for (const { change, value, time } of observations) {
        observer.observe(stage, draft, change.name, change.datasetId ?? '', time, value)
      }
    } else {
      documents.update(stage, draft, merged.entity, changes, by)
    }
    return answer
  }

  /** One urgent work; `given` is what it holds in memory while it waits. */
  const commit = <T>(given: unknown, decide: (stage: Stage) => T): Promise<T> =>
    door.commit(decide, { bytes: workBytes + footprintOf(given) })

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

  /**
   * Decides one work per item; one that throws is an error of its own. A batch of which the first slice cannot be
   * taken at all, for want of room in the queue or on the disk, is refused whole.
   */
  async function batch<Item>(
    items: readonly Item[],
    idOf: (item: Item) => string,
    decide: (stage: Stage, item: Item) => Outcome,
  ): Promise<BatchResult> {
    if (items.length > limits.batchEntitiesMax.value) {
      throw new GatewayError(
        'http.body-too-large',
        `a batch holds at most ${limits.batchEntitiesMax.value} entities`,
      )
    }
    const success: string[] = []
    const created: string[] = []
    const errors: BatchItemError[] = []
    for (let from = 0; from < items.length; from += sliceSize) {
      const outcomes = await takeTurn(() => slice(items.slice(from, from + sliceSize), decide))
      const [first] = outcomes
      if (from === 0 && first instanceof GatewayError && outcomes.every(isShortage)) throw first
      outcomes.forEach((outcome, i) => {
        const id = idOf(items[from + i]!)
        if (outcome instanceof GatewayError) errors.push({ entityId: id, error: outcome })
        else {
          success.push(id)
          if (outcome === 'created') created.push(id)
        }
      })
    }
    return { success, created, errors }
  }

  /** One work per item, submitted together: they share a commit, and a refusal is its own. */
  async function slice<Item>(
    items: readonly Item[],
    decide: (stage: Stage, item: Item) => Outcome,
  ): Promise<Outcome[]> {
    const settled = await Promise.allSettled(
      items.map((item) => commit(item, (stage) => decide(stage, item))),
    )
    return settled.map((outcome) => {
      if (outcome.status === 'fulfilled') return outcome.value
      if (outcome.reason instanceof GatewayError) return outcome.reason
      throw outcome.reason
    })
  }

  const upsertOne = (stage: Stage, entity: Entity, update: boolean, by: Origin): Outcome => {
    const draft = documents.find(stage, entity.id)
    if (draft === undefined) {
      documents.create(stage, entity, by)
      return 'created'
    }
    const merged = update
      ? appendAttributes(draft.entity, fragmentOf(entity), { noOverwrite: false })
      : replaceEntity(draft.entity, entity)
    apply(stage, draft, merged, by)
    return 'done'
  }

  return Object.freeze({
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
    remove: (id, by, when) => commit(id, (stage) => documents.remove(stage, found(stage, id, when), by)),
    batchCreate: (entities, by) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => {
          documents.create(stage, entity, by)
          return 'created'
        },
      ),
    batchUpsert: (entities, { update, by }) =>
      batch(
        entities,
        ({ id }) => id,
        (stage, entity) => upsertOne(stage, entity, update, by),
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
            const names = merged.notUpdated.map(({ attributeName }) => attributeName)
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
          documents.remove(stage, found(stage, id), by)
          return 'done'
        },
      ),
  } satisfies Provision)
}

/** @throws ngsi-ld.not-found for an entity of other types, http.precondition-failed for another version. */
function checkPrecondition({ entity, version }: Draft, { selection, versions }: Precondition): void {
  if (selection !== undefined && !matchesType(selection, entity.type)) {
    throw notFound(`the entity ${entity.id} has other types`)
  }
  if (versions !== undefined && !versions.has(version)) {
    throw new GatewayError('http.precondition-failed', `the entity ${entity.id} was changed since`)
  }
}

const isSameBesideAttributes = (a: Entity, b: Entity): boolean =>
  isSame(a.type, b.type) && isSame(a.scope, b.scope) && a.expiresAt === b.expiresAt

const isSame = (a: string | readonly string[] | undefined, b: typeof a): boolean =>
  a === b || (a !== undefined && b !== undefined && JSON.stringify(a) === JSON.stringify(b))

/** The attributes of an entity as a fragment; types and scopes go along. */
function fragmentOf(entity: Entity): Fragment {
  const { id: _id, ...fragment } = entity
  return fragment
}

/** What became of one item; an error may come with a part that was written. */
type Outcome = 'created' | 'done' | GatewayError

const isShortage = (outcome: Outcome): boolean =>
  outcome instanceof GatewayError && outcome.entry.fault === 'resource'

interface Observed {
  readonly change: AttributeChange
  readonly value: Json
  readonly time: number
}

/** All changes as observations, or undefined when one of them is something else. */
function observationsOf(changes: readonly AttributeChange[]): Observed[] | undefined {
  const observed: Observed[] = []
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
