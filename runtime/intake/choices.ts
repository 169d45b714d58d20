/**
 * Decisions that an operator makes while the gateway runs: devices accepted or ignored, topics mapped to a
 * bridge or ignored. They are stored in the tenant's database, so they survive a restart. The settings file
 * is not changed and takes precedence. If several choices match a topic, the newest applies.
 */
import { limits } from '#base/limits/limits.ts'
import type { Stage } from '#broker/commit/stage.ts'
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Records } from '#store/tables/records.ts'

export type ChoiceKind = 'device' | 'topic'

/**
 * The bridge for the topics of a choice, and the source to add to the bridge's settings, if it has settings.
 */
export interface Mapping {
  readonly bridge: string
  readonly source?: Readonly<Record<string, unknown>> | undefined
}

export interface Choice {
  readonly kind: ChoiceKind
  /** A device, or a topic filter; the filter of a mapping may have named levels such as {device}. */
  readonly name: string
  readonly decision: 'accepted' | 'ignored'
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  /** Present for an accepted topic. */
  readonly mapping?: Mapping | undefined
}

export interface Choices {
  device(name: string): Choice | undefined
  has(kind: ChoiceKind, name: string): boolean
  /** The newest first. */
  all(kind: ChoiceKind): readonly Choice[]
  /**
   * Stages a choice; it replaces one with the same name.
   * @throws ngsi-ld.too-complex at the limit
   */
  put(stage: Stage, choice: Choice): void
  /** Stages the withdrawal of a choice. */
  remove(stage: Stage, kind: ChoiceKind, name: string): void
}

const prefix = 'choice:'
const keyOf = (kind: ChoiceKind, name: string): string => `${prefix}${kind}:${name}`

export function createChoices(records: Pick<Records, 'choices'>): Choices {
  const byKind = { device: new Map<string, Choice>(), topic: new Map<string, Choice>() }
  const most = { device: limits.deviceChoicesMax.value, topic: limits.topicChoicesMax.value }
  const stored = records.choices().flatMap(({ key, value }) => choiceOf(key, value) ?? [])
  for (const choice of stored.toSorted((a, b) => a.at - b.at)) byKind[choice.kind].set(choice.name, choice)

  return Object.freeze({
    device: (name) => byKind.device.get(name),
    has: (kind, name) => byKind[kind].has(name),
    all: (kind) => [...byKind[kind].values()].toReversed(),
    put(stage, choice) {
      const { kind, name, decision, at, mapping } = choice
      if (!byKind[kind].has(name) && byKind[kind].size >= most[kind])
        throw tooComplex(
          `${most[kind]} choices about a ${kind} exist, which is the maximum; withdraw one of them first`,
        )
      stage.write('meta.put', keyOf(kind, name), JSON.stringify({ decision, at, mapping }))
      stage.published(() => {
        byKind[kind].delete(name)
        byKind[kind].set(name, choice)
      })
    },
    remove(stage, kind, name) {
      stage.write('meta.delete', keyOf(kind, name))
      stage.published(() => byKind[kind].delete(name))
    },
  } satisfies Choices)
}

/** Ignores a row that this version cannot read. */
function choiceOf(key: string, value: string | number): Choice | undefined {
  const [, kind, name] = /^choice:(device|topic):(.+)$/s.exec(key) ?? []
  const stored = parsedJson(String(value))
  if (kind === undefined || name === undefined || !isObject(stored)) return undefined
  const { decision, at, mapping } = stored
  if ((decision !== 'accepted' && decision !== 'ignored') || typeof at !== 'number') return undefined
  const choice = { kind: kind as ChoiceKind, name, decision, at } as const
  if (!isObject(mapping) || typeof mapping['bridge'] !== 'string') return choice
  const source = isObject(mapping['source']) ? mapping['source'] : undefined
  return { ...choice, mapping: { bridge: mapping['bridge'], source } }
}
