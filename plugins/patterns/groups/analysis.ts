/**
 * Applies the registered models: forms groups of known streams, caches their values, and reports the pattern
 * of each window. The windows of a group depend on its cached values, not on the order of their arrival: a
 * late value changes the patterns of the windows that it belongs to. Calls must not overlap.
 */
import { limits } from '#base/limits/limits.ts'
import type { YieldIfDue } from '#base/load/yielding.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { eventEntity, eventId } from '#plugins/patterns/events/event-entity.ts'
import type { LabelQueue } from '#plugins/patterns/labelling/label-queue.ts'
import {
  type CachedSeries,
  firstFrom,
  newSeries,
  put,
  removeBefore,
} from '#plugins/patterns/windows/cached-series.ts'
import { keptFrom } from '#plugins/patterns/windows/rows.ts'
import { spanOf } from '#plugins/patterns/windows/temporal.ts'
import {
  allRows,
  type FoundWindow,
  groupKey,
  type ModelRules,
  patternName,
  patternsOf,
  reachedIn,
  type StreamGroup,
} from './active-model.ts'
import type { CachedChange, CachedValue } from './pattern-statements.ts'
import { groupsOf, type PlacedStream } from './spatial.ts'

export interface AnalysisPorts {
  readonly streams: {
    readonly all: () => Iterable<PlacedStream>
    get(id: string): PlacedStream | undefined
  }
  /** Called for each pattern that is new or differs from before; undefined if its window is none any more. */
  readonly publish: (id: string, entity: JsonObject | undefined) => void
  /** Labels the windows of ONNX models. */
  readonly labels: Pick<LabelQueue, 'follow' | 'unfollow' | 'add' | 'drop'>
  readonly yieldIfDue: YieldIfDue
}

/** A value of a stream. */
export interface StreamValue {
  readonly stream: string
  readonly time: number
  readonly value: number
}

/** Figures of a model since the start. */
export interface ModelFigures {
  readonly groups: number
  readonly streams: number
  readonly windows: number
  readonly lastWindowEnd: number | undefined
}

export interface Unsaved {
  /** Numbers of streams; undefined for those that were dropped. */
  readonly streams: ReadonlyMap<string, number | undefined>
  readonly values: readonly CachedChange[]
  readonly groups: ReadonlyMap<string, number | undefined>
}

interface Applied {
  readonly rules: ModelRules
  readonly groups: Map<string, StreamGroup>
  windows: number
  lastWindowEnd: number | undefined
}

/** A stream with cached values. */
interface Cached {
  readonly n: number
  readonly id: string
  readonly series: CachedSeries
  readonly groups: Set<StreamGroup>
}

type Between = () => Promise<void>

export type Analysis = ReturnType<typeof createAnalysis>

export function createAnalysis({ streams, publish, labels, yieldIfDue }: AnalysisPorts) {
  const models = new Map<string, Applied>()
  const cached = new Map<string, Cached>()
  /** Saved times of first rows, for groups that are not formed yet. */
  const savedSince = new Map<string, number>()
  let lastNumber = 0
  let unsaved = newUnsaved()
  let late = 0

  /**
   * Forms the groups of all models anew. Groups and values of streams that no model wants are dropped.
   * @param between called between parts of the work; saves if much is unsaved.
   */
  async function regroup(between: Between): Promise<void> {
    const candidates = candidateStreams()
    const ids = new Set(candidates.map(({ id }) => id))
    for (const one of [...cached.values()]) {
      if (ids.has(one.id)) continue
      drop(one)
      await between()
    }
    for (const { id } of candidates) if (!cached.has(id)) add(id)
    for (const { groups } of cached.values()) groups.clear()
    for (const applied of models.values()) {
      const { rules } = applied
      const formed = await groupsOf(rules.spatial, rules.properties, candidates, yieldIfDue)
      replaceGroups(applied, formed)
    }
    for (const key of savedSince.keys()) unsaved.groups.set(key, undefined)
    savedSince.clear()
  }

  /** The streams with a property that a model names. */
  function candidateStreams(): readonly PlacedStream[] {
    const wanted = new Set([...models.values()].flatMap(({ rules }) => rules.properties))
    const candidates: PlacedStream[] = []
    for (const stream of streams.all()) {
      if (candidates.length >= limits.patternCachedStreamsMax.value) break
      if (stream.properties.some((property) => wanted.has(property))) candidates.push(stream)
    }
    return candidates
  }

  function replaceGroups(applied: Applied, formed: readonly (readonly string[])[]): void {
    const { rules, groups } = applied
    const keys = new Set(formed.map((members) => groupKey(rules, members)))
    for (const key of [...groups.keys()]) {
      if (keys.has(key)) continue
      groups.delete(key)
      unsaved.groups.set(key, undefined)
    }
    for (const members of formed) join(applied, members)
  }

  function add(id: string, n = lastNumber + 1): void {
    cached.set(id, { n, id, series: newSeries(), groups: new Set() })
    unsaved.streams.set(id, n)
    lastNumber = Math.max(lastNumber, n)
  }

  function drop({ n, id, series }: Cached): void {
    cached.delete(id)
    unsaved.streams.set(id, undefined)
    for (const time of series.times) unsaved.values.push({ n, time, value: undefined })
  }

  function join({ rules, groups }: Applied, members: readonly string[]): void {
    const key = groupKey(rules, members)
    const ones = members.map((id) => cached.get(id)!)
    const since = savedSince.get(key)
    savedSince.delete(key)
    const group = groups.get(key) ?? {
      key,
      rules,
      streams: members,
      series: ones.map(({ series }) => series),
      since,
      uncounted: limits.patternRowSlack.value,
    }
    groups.set(key, group)
    for (const one of ones) one.groups.add(group)
  }

  /** The groups that a value concerns, each with the time from which its windows may change. */
  function affected({ series, groups }: Cached, time: number): readonly (readonly [StreamGroup, number])[] {
    const hasEarlier = firstFrom(series.times, time) > 0
    return [...groups].flatMap((group) => {
      if (time < (group.since ?? Number.NEGATIVE_INFINITY)) return []
      if (spanOf(time, group.rules.temporal) === undefined) return []
      const from = hasEarlier ? Math.min(time, reachedIn(group)) : Number.NEGATIVE_INFINITY
      return [[group, from] as const]
    })
  }

  async function observeSome(values: readonly StreamValue[]): Promise<void> {
    const changes = new Map<StreamGroup, number>()
    const accepted: (readonly [Cached, StreamValue])[] = []
    for (const value of values) {
      const one = cached.get(value.stream)
      if (one === undefined || isKnown(one.series, value)) continue
      const concerned = affected(one, value.time)
      if (concerned.length === 0 && one.groups.size > 0) {
        late++
        continue
      }
      accepted.push([one, value])
      for (const [group, from] of concerned) {
        changes.set(group, Math.min(from, changes.get(group) ?? from))
        group.uncounted++
      }
    }
    const before = await allPatterns(changes)
    for (const [{ n, series }, { time, value }] of accepted)
      if (put(series, time, value)) unsaved.values.push({ n, time, value })
    const after = await allPatterns(changes)
    for (const group of changes.keys()) publishChanges(group, before.get(group)!, after.get(group)!)
    for (const group of changes.keys()) dropRows(group)
    for (const [one] of accepted) trim(one)
  }

  async function allPatterns(
    changes: ReadonlyMap<StreamGroup, number>,
  ): Promise<ReadonlyMap<StreamGroup, ReadonlyMap<number, FoundWindow>>> {
    const all = new Map<StreamGroup, Map<number, FoundWindow>>()
    for (const [group, from] of changes) {
      const patterns = new Map<number, FoundWindow>()
      for (const pattern of patternsOf(group, from)) {
        patterns.set(pattern.end, pattern)
        await yieldIfDue()
      }
      all.set(group, patterns)
      await yieldIfDue()
    }
    return all
  }

  function publishChanges(
    { key, rules, streams: members }: StreamGroup,
    before: ReadonlyMap<number, FoundWindow>,
    after: ReadonlyMap<number, FoundWindow>,
  ): void {
    for (const end of before.keys()) {
      if (after.has(end)) continue
      const id = eventId(key, end)
      labels.drop(rules.id, id)
      publish(id, undefined)
    }
    const applied = models.get(rules.id)
    for (const [end, pattern] of after) {
      if (isSame(before.get(end), pattern)) continue
      const id = eventId(key, end)
      if ('label' in pattern) publish(id, eventEntity(id, members, pattern))
      else {
        const features = Float32Array.from(pattern.features)
        labels.add({ ...pattern, id, model: rules.id, streams: members, features })
      }
      if (applied === undefined || before.has(end)) continue
      applied.windows++
      applied.lastWindowEnd = Math.max(applied.lastWindowEnd ?? end, end)
    }
  }

  /** Drops the oldest rows of a group that has too many. */
  function dropRows(group: StreamGroup): void {
    if (group.uncounted < limits.patternRowSlack.value) return
    group.uncounted = 0
    const { temporal } = group.rules
    const since = keptFrom(allRows(group), {
      step: temporal.step,
      most: temporal.window + limits.patternLateRows.value,
    })
    if (since === undefined) return
    group.since = since
    unsaved.groups.set(group.key, since)
  }

  /** Drops values that no group needs. */
  function trim({ n, series, groups }: Cached): void {
    const { times } = series
    const most = groups.size === 0 ? limits.patternLateRows.value : limits.patternValuesMax.value
    let from = times[times.length - most] ?? Number.NEGATIVE_INFINITY
    const since = [...groups].map((group) => group.since ?? Number.NEGATIVE_INFINITY)
    if (since.length > 0) from = Math.max(from, Math.min(...since))
    for (const time of removeBefore(series, from)) unsaved.values.push({ n, time, value: undefined })
  }

  return Object.freeze({
    add(rules: ModelRules): void {
      models.set(rules.id, { rules, groups: new Map(), windows: 0, lastWindowEnd: undefined })
      const { id, model } = rules
      if (model.kind === 'onnx')
        labels.follow({ id, name: model.name, nameOf: (label) => patternName(label, rules) })
    },
    remove(id: string): void {
      for (const key of models.get(id)?.groups.keys() ?? []) unsaved.groups.set(key, undefined)
      models.delete(id)
      labels.unfollow(id)
    },
    /** Whether any model is applied. */
    isEmpty: () => models.size === 0,
    regroup,
    /** Takes values in order of arrival; those of streams that no model wants are ignored. */
    async observe(values: readonly StreamValue[], between: Between): Promise<void> {
      for (let from = 0; from < values.length; from += limits.patternValuesAtOnce.value) {
        await observeSome(values.slice(from, from + limits.patternValuesAtOnce.value))
        await between()
      }
    },
    /** Takes saved streams and groups, before values and `regroup`. */
    restore(
      saved: readonly (readonly [id: string, n: number])[],
      groups: readonly (readonly [key: string, since: number])[],
    ): void {
      for (const [id, n] of saved) add(id, n)
      for (const [key, since] of groups) savedSince.set(key, since)
      unsaved = newUnsaved()
    },
    /** Takes saved values of streams in order of time; `ids` has the ids of the streams. */
    restoreValues(values: readonly CachedValue[], ids: ReadonlyMap<number, string>): void {
      for (const { n, time, value } of values) {
        const one = cached.get(ids.get(n) ?? '')
        if (one !== undefined) put(one.series, time, value)
      }
    },
    figures(id: string): ModelFigures | undefined {
      const applied = models.get(id)
      if (applied === undefined) return undefined
      const { groups, windows, lastWindowEnd } = applied
      const members = new Set([...groups.values()].flatMap((group) => group.streams))
      return { groups: groups.size, streams: members.size, windows, lastWindowEnd }
    },
    /** Ids of the streams whose values a model uses. */
    membersOf: (id: string): readonly string[] => [
      ...new Set([...(models.get(id)?.groups.values() ?? [])].flatMap((group) => group.streams)),
    ],
    /** Streams with cached values, and values that came too late or outside the hours. */
    counts: () => ({ cachedStreams: cached.size, ignoredValues: late }),
    /** Ceilings that leave streams or groups out. */
    complaints(): readonly string[] {
      const most = limits.patternGroupsMax.value
      const full = [...models.values()].filter(({ groups }) => groups.size >= most)
      return [
        ...full.map(({ rules }) => `model ${rules.id} has ${most} groups; further ones are not analysed`),
        ...(cached.size >= limits.patternCachedStreamsMax.value
          ? [`values of ${cached.size} streams are cached; further streams are not analysed`]
          : []),
      ]
    },
    unsavedCount: () => unsaved.values.length,
    /** Changes since `forgetUnsaved` was called, after they were saved. */
    unsaved: (): Unsaved => unsaved,
    forgetUnsaved(): void {
      unsaved = newUnsaved()
    },
  })
}

const newUnsaved = () => ({
  streams: new Map<string, number | undefined>(),
  values: [] as CachedChange[],
  groups: new Map<string, number | undefined>(),
})

function isKnown({ times, values }: CachedSeries, { time, value }: StreamValue): boolean {
  const at = firstFrom(times, time)
  return times[at] === time && values[at] === value
}

function isSame(a: FoundWindow | undefined, b: FoundWindow): boolean {
  if (a === undefined || a.start !== b.start) return false
  if ('label' in a || 'label' in b)
    return 'label' in a && 'label' in b && a.label === b.label && a.confidence === b.confidence
  return a.features.every((feature, i) => feature === b.features[i])
}
