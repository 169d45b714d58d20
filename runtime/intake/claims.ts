/**
 * Selects the bridge that reads a frame: by media type if the transport states one, otherwise by MQTT topic
 * filter. The settings come first, in order; then the choices of an operator, the newest first. Results are
 * cached per topic, within a limit.
 */
import { limits } from '#base/limits/limits.ts'
import type { Bridge, Decoded, Frame, Proposal, SettingProblem } from '#contract'
import type { Choice, Mapping } from './choices.ts'

/** A bridge with its validated settings. */
export interface Claimant {
  readonly name: string
  readonly format: string
  decode(frame: Frame): Decoded
}

interface Entry extends Claimant {
  readonly filters: readonly (readonly string[])[]
  /** The filters that the bridge has without settings. */
  readonly builtIn: readonly (readonly string[])[]
  readonly contentTypes: readonly string[]
}

/** An entry for an operator's choice; without a claimant its topics are ignored. */
interface Chosen {
  readonly choice: Choice
  readonly filters: readonly (readonly string[])[]
  readonly claimant: Claimant | undefined
}

/** Settings with which a bridge could read a frame that no bridge claims. */
export interface BridgeProposal extends Proposal {
  readonly bridge: string
}

export interface Claims {
  find(frame: Frame): Claimant | undefined
  /** The bridge that reads a topic by default or by the settings, regardless of choices. */
  settledBy(topic: string): { readonly bridge: string; readonly isBuiltIn: boolean } | undefined
  /** The usable choice that applies to a topic. */
  choiceOf(topic: string): Choice | undefined
  /** True when an operator chose to ignore the topic. */
  isIgnored(topic: string): boolean
  /** Replaces the choices about topics, the newest first; returns those that no bridge can use. */
  choose(choices: readonly Choice[]): readonly Choice[]
  /** The bridge configured for the topics of a mapping, or the problems of the mapping. */
  claimantOf(name: string, mapping: Mapping): Claimant | readonly SettingProblem[]
  propose(frame: Frame): BridgeProposal | undefined
  /** Names of the bridges that accept a source. */
  readonly configurable: readonly string[]
}

/** `settings` holds the raw settings of each bridge by name; they were validated before. */
export function createClaims(
  bridges: readonly Bridge<unknown>[],
  settings: Readonly<Record<string, unknown>>,
): Claims {
  const entries = bridges.map((bridge): Entry => {
    const own = bridge.check?.(settings[bridge.name] ?? []).settings
    return entryOf(bridge, own, [...bridge.topics, ...(bridge.claims?.(own) ?? [])])
  })
  const configurable = bridges.flatMap(({ name, check }) => (check === undefined ? [] : [name]))
  let chosen: readonly Chosen[] = []
  const byTopic = new Map<string, Claimant | 'ignored' | 'unclaimed'>()

  function entryOfMapping(name: string, mapping: Mapping): Entry | readonly SettingProblem[] {
    const bridge = bridges.find((one) => one.name === mapping.bridge)
    if (bridge === undefined)
      return [{ path: 'bridge', expected: `one of ${bridges.map((one) => one.name).join(', ')}` }]
    if (bridge.check === undefined) return entryOf(bridge, undefined, [name])
    const checked = bridge.check([{ ...mapping.source, topic: name }])
    if (checked.settings === undefined)
      return checked.problems.map(({ path, expected }) => ({ path: path.replace(/^\[0\]\.?/, ''), expected }))
    return entryOf(bridge, checked.settings, bridge.claims?.(checked.settings) ?? [])
  }

  const entryFor = (topic: string): Entry | undefined => claiming(entries, topic)
  const chosenFor = (topic: string): Chosen | undefined => claiming(chosen, topic)

  function ofTopic(topic: string): Claimant | 'ignored' | 'unclaimed' {
    const known = byTopic.get(topic)
    if (known !== undefined) return known
    const choice = chosenFor(topic)
    const found = entryFor(topic) ?? (choice === undefined ? 'unclaimed' : (choice.claimant ?? 'ignored'))
    if (byTopic.size >= limits.topicsRememberedMax.value) byTopic.delete(byTopic.keys().next().value!)
    byTopic.set(topic, found)
    return found
  }

  return Object.freeze({
    find(frame) {
      if (frame.contentType !== undefined) {
        const mediaType = frame.contentType.split(';', 1)[0]!.trim().toLowerCase()
        const found = entries.find(({ contentTypes }) => contentTypes.includes(mediaType))
        if (found !== undefined) return found
      }
      const found = ofTopic(frame.topic)
      return typeof found === 'string' ? undefined : found
    },
    settledBy(topic) {
      const entry = entryFor(topic)
      return entry && { bridge: entry.name, isBuiltIn: isClaimed(entry.builtIn, topic.split('/')) }
    },
    choiceOf: (topic) => chosenFor(topic)?.choice,
    configurable,
    isIgnored: (topic) => ofTopic(topic) === 'ignored',
    choose(choices) {
      byTopic.clear()
      const unusable: Choice[] = []
      chosen = choices.flatMap((choice): Chosen[] => {
        const { name, decision, mapping } = choice
        if (decision === 'ignored') return [{ choice, filters: [name.split('/')], claimant: undefined }]
        const entry = mapping && entryOfMapping(name, mapping)
        if (entry !== undefined && 'filters' in entry)
          return [{ choice, filters: entry.filters, claimant: entry }]
        unusable.push(choice)
        return []
      })
      return unusable
    },
    claimantOf: entryOfMapping,
    propose(frame) {
      for (const bridge of bridges) {
        const proposal = bridge.propose?.(frame)
        if (proposal !== undefined) return { bridge: bridge.name, ...proposal }
      }
      return undefined
    },
  } satisfies Claims)
}

function entryOf(bridge: Bridge<unknown>, own: unknown, filters: readonly string[]): Entry {
  return {
    name: bridge.name,
    format: bridge.format,
    filters: filters.map((filter) => filter.split('/')),
    builtIn: bridge.topics.map((filter) => filter.split('/')),
    contentTypes: bridge.contentTypes,
    decode: (frame) => bridge.decode(frame, own),
  }
}

type Filters = readonly (readonly string[])[]

const isClaimed = (filters: Filters, levels: readonly string[]): boolean =>
  filters.some((filter) => matches(filter, levels))

function claiming<T extends { filters: Filters }>(all: readonly T[], topic: string): T | undefined {
  const levels = topic.split('/')
  return all.find(({ filters }) => isClaimed(filters, levels))
}

/** True when an MQTT filter matches a topic. */
export const matchesFilter = (filter: string, topic: string): boolean =>
  matches(filter.split('/'), topic.split('/'))

/**
 * MQTT filter matching [MQTT-4.7.1]; topics that begin with $ never match a leading wildcard [MQTT-4.7.2-1].
 */
function matches(filter: readonly string[], levels: readonly string[]): boolean {
  if (levels[0]!.startsWith('$') && (filter[0] === '#' || filter[0] === '+')) return false
  for (let i = 0; i < filter.length; i++) {
    if (filter[i] === '#') return true
    if (i >= levels.length || (filter[i] !== '+' && filter[i] !== levels[i])) return false
  }
  return filter.length === levels.length
}
