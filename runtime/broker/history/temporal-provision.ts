/**
 * Use-cases that write history (GS CIM 009, 5.6.11 to 5.6.16). Creating and appending only add: an
 * observation is its entity, attribute, datasetId, observedAt and value, so several values of one time
 * coexist. Only a request that names an instance id modifies or removes an instance; such corrections are
 * rows beside the stored instance. The newest instance becomes the current value unless that is newer. Values
 * of observed Properties are stored in their streams, all other instances in a change record.
 */

import { limits } from '#base/limits/limits.ts'
import { footprintOf } from '#base/process/footprint.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Observer } from '#broker/entities/observer.ts'
import { isSameBesideAttributes, observationsOf, stageOf } from '#broker/entities/provision.ts'
import { type DocumentDraft, type DocumentDrafts, documentText } from '#broker/state/document-drafts.ts'
import { timesKey } from '#broker/state/entity-view.ts'
import type { ChangeOrigin } from '#broker/state/stored-entity.ts'
import { instanceOf } from '#broker/state/streams.ts'
import type { AttributeInstance } from '#ngsi-ld/entity/attribute.ts'
import { kindOf } from '#ngsi-ld/entity/attribute-kind.ts'
import { type Fragment, instancesOf } from '#ngsi-ld/entity/entity.ts'
import type { AttributeChange } from '#ngsi-ld/entity/entity-draft.ts'
import { appendAttributes, deleteAttribute, hasShapeOf } from '#ngsi-ld/entity/merge.ts'
import {
  newestOf,
  type PastInstance,
  type TemporalEntity,
  type TemporalFragment,
} from '#ngsi-ld/history/temporal-entity.ts'
import { matchesType, type TypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { dateTimeToMs, isMillisecondExact } from '#ngsi-ld/values/datetime.ts'
import { notFound, tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { HistoryEditRow } from '#store/history/history-edits.ts'
import { correctionsOf } from './corrections.ts'
import { evolutionOf, type Lives, livesOf } from './evolution.ts'
import type { EvolutionPorts } from './evolution-sources.ts'
import { forgetHistory, removeFolded } from './forget.ts'
import { isOldScope, isSame, unknownOf, unknownPast, unknownScopes } from './known-past.ts'
import { byDataset, newerThan, without } from './newer-instances.ts'
import { sameObservations } from './same-observations.ts'
import type { TemporalBroker } from './temporal-requests.ts'

export interface TemporalProvisionPorts extends EvolutionPorts {
  readonly door: Door
  readonly documents: DocumentDrafts
  readonly observer: Observer
}

type Provision = Pick<
  TemporalBroker,
  'put' | 'append' | 'remove' | 'removeAttribute' | 'replaceInstance' | 'removeInstance'
>

/** Memory of a waiting work besides its input. */
const workBytes = 256

export function createTemporalProvision(ports: TemporalProvisionPorts): Provision {
  const { door, documents, observer, streams } = ports
  const commit = <T>(given: unknown, decide: (stage: Stage) => T): Promise<T> =>
    door.commit(decide, { bytes: workBytes + footprintOf(given) })

  function create(stage: Stage, entity: TemporalEntity, by: ChangeOrigin): void {
    const newest = newestOf(entity)
    const draft = documents.create(stage, newest, by)
    stage.write('history-born.put', draft.rid)
    addPast(
      stage,
      draft,
      without(entity, (name) => instancesOf(newest, name)),
      by,
    )
    addScopes(stage, draft, entity, by)
  }

  /** Records scopes at their observed times. */
  function addScopes(
    stage: Stage,
    { rid, id }: DocumentDraft,
    given: TemporalFragment,
    by: ChangeOrigin,
  ): void {
    const instances = unknownScopes(ports, id, given).map((instance) => ['scope', '', instance])
    if (instances.length > 0) streams.record(stage, rid, { kind: 'temporal', id, by, instances })
  }

  /** Makes the newest instances current unless the entity has newer ones, and adds all others to the past. */
  function extend(stage: Stage, draft: DocumentDraft, given: TemporalFragment, by: ChangeOrigin): void {
    const unknown = unknownOf(ports, draft.id, given)
    const { scope: scopes, ...others } = newerThan(draft, given, unknown)
    const isOlder = scopes !== undefined && isOldScope(ports, draft.id, given)
    const newer: Fragment = scopes === undefined || isOlder ? others : { ...others, scope: scopes }
    addScopes(stage, draft, given, by)
    const merged = appendAttributes(draft.entity, newer, { noOverwrite: false })
    const changes = merged.changes.filter(({ before, after }) => !isSame(before, after))
    const changed = Map.groupBy(changes, ({ name }) => name)
    const past = without(unknown, (name) => changed.get(name)?.flatMap(({ after }) => after ?? []) ?? [])
    const isOther = isErased(draft.rid) || !isSameBesideAttributes(merged.entity, draft.entity)
    const observed = isOther ? undefined : observationsOf(changes)
    if (observed === undefined) {
      const next = documents.update(stage, draft, merged.entity, changes, by)
      addPast(stage, next, past, by)
      return
    }
    if (observed.some(({ value }) => typeof value !== 'number')) documentText(merged.entity)
    // The past is written first, so that times ascend as in the request.
    addPast(stage, draft, past, by)
    for (const { change, value, time } of observed)
      observer.observe(stage, draft, change.name, change.datasetId ?? '', time, value)
  }

  const isErased = (rid: number): boolean => ports.edits.erased(rid).length > 0

  /**
   * Adds instances that do not become current: to streams if possible, else to a change record. After an
   * erasure all of them are recorded, because a stream rejects values it had before.
   */
  function addPast(
    stage: Stage,
    draft: DocumentDraft,
    { attributes }: TemporalFragment,
    by: ChangeOrigin,
  ): void {
    const others: (readonly [name: string, dataset: string, instance: AttributeInstance])[] = []
    for (const [name, instances] of attributes)
      for (const [dataset, ofDataset] of byDataset(instances)) {
        const { observed, recorded } = separate(stage, draft, { name, dataset, instances: ofDataset })
        for (const instance of recorded) others.push([name, dataset, instance])
        if (observed.length === 0) continue
        const stream = streams.open(stage, draft, name, dataset)
        streams.addPast(
          stage,
          stream,
          observed.map((instance) => [dateTimeToMs(instance.observedAt!)!, instance.value!] as const),
        )
      }
    if (others.length > 0)
      streams.record(stage, draft.rid, { kind: 'temporal', id: draft.id, by, instances: others })
  }

  /** Separates instances for the stream of a dataset from those for a change record. */
  function separate(
    stage: Stage,
    draft: DocumentDraft,
    { name, dataset, instances }: { name: string; dataset: string; instances: readonly AttributeInstance[] },
  ) {
    const wasErased = isErased(draft.rid)
    const current = instanceOf(draft.entity, name, dataset)
    const correctionOf = correctionsIn(draft.rid, name, dataset)
    const observed: AttributeInstance[] = []
    const recorded: AttributeInstance[] = []
    for (const instance of instances) {
      const correction = correctionOf(instance)
      // A removed observation is restored under its original id; a modified one stays as it is.
      if (correction?.body === null) {
        correct(stage, draft.rid, correction.instance, instance)
        continue
      }
      const isCurrent = isSame(instance, current)
      // A current value without observedAt has no time that would distinguish a repetition.
      if (isCurrent && instance.observedAt === undefined) continue
      const isStreamed = !wasErased && !isCurrent && correction === undefined
      if (isStreamed && isObservation(instance, current)) observed.push(instance)
      else recorded.push(instance)
    }
    return { observed, recorded }
  }

  /** Finds the correction of the stream's observation that equals an instance. */
  function correctionsIn(
    rid: number,
    name: string,
    dataset: string,
  ): (instance: AttributeInstance) => HistoryEditRow | undefined {
    const number = ports.names.find(name)
    const row = number === undefined ? undefined : ports.history.streamOf(rid, number, dataset)
    const own = row && correctionsOf(ports.edits, rid).ofStream(row.s, name, dataset)
    if (own === undefined) return () => undefined
    return ({ observedAt, value }) => {
      const time = dateTimeToMs(observedAt ?? '')
      return time === undefined || value === undefined ? undefined : own.editOf(time, value)
    }
  }

  /**
   * Deletes current instances that were deleted after they were observed; adds other deletions to the past.
   */
  function applyDeletions(stage: Stage, id: string, given: TemporalFragment, by: ChangeOrigin): void {
    const { deletions = [], isReplay = false, isPast = false } = given
    if (deletions.length === 0) return
    const draft = documents.find(stage, id)!
    const past: PastInstance[] = []
    const changes: AttributeChange[] = []
    let { entity } = draft
    for (const { at, ...one } of deletions) {
      if (!isReplay && !isPast && endsCurrent({ ...draft, entity }, one, at ?? Number.POSITIVE_INFINITY)) {
        const datasetId = one.dataset === '' ? undefined : one.dataset
        const merged = deleteAttribute(entity, one.name, { datasetId, deleteAll: false })
        entity = merged.entity
        changes.push(...merged.changes)
      } else past.push({ ...one, at: at ?? stage.at, instance: null })
    }
    if (entity !== draft.entity) documents.update(stage, draft, entity, changes, by)
    addUnobserved(
      stage,
      id,
      past.toSorted((a, b) => a.at - b.at),
      by,
    )
  }

  /** Whether an attribute, or the scope, exists and was not observed or written after some time (ms). */
  function endsCurrent(
    { id, entity, times, created }: DocumentDraft,
    { name, dataset }: Pick<PastInstance, 'name' | 'dataset'>,
    at: number,
  ): boolean {
    if (name === 'scope') {
      const query = { timeproperty: 'modifiedAt', attrs: new Set([name]), lastN: 1, limit: 1 } as const
      const [last] = evolutionOf(ports, id, query)?.attributes.get(name) ?? []
      return entity.scope !== undefined && (last?.observedAt ?? created) <= at
    }
    const current = instanceOf(entity, name, dataset)
    if (current === undefined) return false
    const [, modified = created] = times[timesKey(name, dataset)] ?? []
    return (dateTimeToMs(current.observedAt ?? '') ?? modified) <= at
  }

  /** Adds past instances without observedAt at the times given, skipping those already stored. */
  function addUnobserved(
    stage: Stage,
    id: string,
    past: readonly PastInstance[] | undefined,
    by: ChangeOrigin,
  ): void {
    const rows = unknownPast(ports, id, past).map((one) => [
      one.name,
      one.dataset,
      one.instance,
      one.type,
      one.at,
    ])
    if (rows.length === 0) return
    streams.record(stage, documents.find(stage, id)!.rid, { kind: 'temporal', id, by, instances: rows })
  }

  function existing(id: string): Lives {
    const lives = livesOf(ports, id)
    if (lives === undefined) throw notFound(`no entity has or had the id ${id}`)
    return lives
  }

  function removeAll(stage: Stage, id: string, by: ChangeOrigin, selection?: TypeSelection): void {
    const lives = existing(id)
    const draft = documents.find(stage, id)
    if (selection !== undefined && !matchesType(selection, (draft ?? lives).entity.type))
      throw notFound(`the entity ${id} does not have the required types`)
    const rids = [
      ...ports.entities.tombstones(id).map(({ rid }) => rid),
      ...(draft === undefined ? [] : [draft.rid]),
    ]
    const isBorn = draft !== undefined && ports.edits.isBorn(draft.rid)
    if (isBorn) documents.remove(stage, draft, by)
    for (const rid of rids) {
      if (rid !== draft?.rid || isBorn) {
        forgetHistory(ports.history, stage, rid)
        continue
      }
      removeFolded(ports.history, stage, rid)
      const n = streams.record(stage, rid, { kind: 'erased', id, by, name: '', dataset: '*' })
      stage.write('history-erased.put', rid, '', '*', n, stage.at)
      stage.closeTime()
    }
  }

  /** Modifies or removes an instance wherever it is stored; other copies of the observation are removed. */
  function correctAll(
    stage: Stage,
    id: string,
    { name, instanceId, body }: { name: string; instanceId: string; body: AttributeInstance | undefined },
  ): void {
    const stored = sameObservations(ports, existing(id).rids, name, instanceId)
    if (stored.length === 0) throw notFound(`${id} has no instance ${instanceId} of ${name}`)
    for (const one of stored)
      correct(stage, one.rid, one.instanceId, one.instanceId === instanceId ? body : undefined)
  }

  function correct(stage: Stage, rid: number, instanceId: string, body: AttributeInstance | undefined): void {
    const key = `edits ${rid}`
    const count = (stage.scratch.get(key) as number | undefined) ?? ports.edits.count(rid)
    stage.scratch.set(key, count + 1)
    if (count >= limits.historyEditsMax.value) {
      throw tooManyResults(
        `the entity already has the maximum of ${limits.historyEditsMax.value} corrected instances`,
      )
    }
    stage.write(
      'history-edit.put',
      rid,
      instanceId,
      stage.at,
      body === undefined ? null : JSON.stringify(body),
    )
  }

  return {
    put: (given, by) =>
      commit(given, (unmarked) => {
        const stage = stageOf(unmarked, by)
        const { id } = given
        const draft = documents.find(stage, id)
        // An entity with erased history starts a new one.
        const isKnown = livesOf(ports, id) !== undefined
        if (draft === undefined) {
          const entity = given.isReplay === true && isKnown ? unknownOf(ports, id, given) : given
          const isRepeated = entity.attributes.size < given.attributes.size && entity.attributes.size === 0
          // A repeated transfer of a history does not re-create a deleted entity.
          if (isRepeated && unknownPast(ports, id, given.past).length === 0) return 'extended'
          create(stage, entity, by)
        }
        // The sending gateway decides what is current, and sends that separately.
        else if (given.isPast === true) addPast(stage, draft, unknownOf(ports, id, given), by)
        else extend(stage, draft, given, by)
        addUnobserved(stage, id, given.past, by)
        applyDeletions(stage, id, given, by)
        return isKnown ? 'extended' : 'created'
      }),
    append: (id, fragment, by) =>
      commit(fragment, (given) => {
        const stage = stageOf(given, by)
        const draft = documents.find(stage, id)
        if (draft === undefined) throw notFound(`the entity ${id} does not exist`)
        extend(stage, draft, fragment, by)
        applyDeletions(stage, id, fragment, by)
      }),
    remove: (id, by, selection) => commit(id, (stage) => removeAll(stage, id, by, selection)),
    removeAttribute: (id, name, { datasetId, deleteAll, by }) =>
      commit(id, (stage) => {
        const { rids } = existing(id)
        const datasets = deleteAll ? undefined : new Set([datasetId ?? '@none'])
        const wanted = { attrs: new Set([name]), datasets, limit: 1 }
        const hasAny = [
          { ...wanted, timeproperty: 'observedAt' } as const,
          { ...wanted, timeproperty: 'createdAt', unobserved: true } as const,
        ].some((query) => evolutionOf(ports, id, query)?.attributes.has(name))
        if (!hasAny) throw notFound(`${id} has no history of ${name}`)
        const dataset = deleteAll ? '*' : (datasetId ?? '')
        for (const [rid] of rids) {
          for (const row of ports.history.streamsOf(rid)) {
            if (ports.names.text(row.name) !== name || (!deleteAll && row.dataset !== dataset)) continue
            stage.write('chunk.erase', row.s, row.s)
            stage.write('rollup.erase', row.s)
          }
          const n = streams.record(stage, rid, { kind: 'erased', id, by, name, dataset })
          stage.write('history-erased.put', rid, name, dataset, n, stage.at)
          stage.closeTime()
        }
      }),
    replaceInstance: (id, name, instanceId, body) =>
      commit(body, (stage) => correctAll(stage, id, { name, instanceId, body })),
    removeInstance: (id, name, instanceId) =>
      commit(id, (stage) => correctAll(stage, id, { name, instanceId, body: undefined })),
  }
}

/** Whether an instance can be an observation of the stream of the current instance. */
const isObservation = (instance: AttributeInstance, current: AttributeInstance | undefined): boolean =>
  current !== undefined && isObservable(instance) && hasShapeOf(instance, current)

const isObservable = (instance: AttributeInstance): boolean =>
  kindOf(instance).member === 'value' &&
  instance.observedAt !== undefined &&
  isMillisecondExact(instance.observedAt)
