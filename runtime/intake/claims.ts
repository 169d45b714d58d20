/**
 * Which bridge reads a frame: by media type where the transport states one, else by MQTT topic filter. The first
 * bridge in order that claims a topic has it. Answers are remembered per topic, within a ceiling.
 */
import { limits } from '#base/limits.ts'
import type { Bridge, Decoded, Frame } from '#contract'

/** One bridge with its checked settings. */
export interface Claimant {
  readonly name: string
  readonly format: string
  decode(frame: Frame): Decoded
}

interface Entry extends Claimant {
  readonly filters: readonly (readonly string[])[]
  readonly contentTypes: readonly string[]
}

export interface Claims {
  find(frame: Frame): Claimant | undefined
}

/** `settings` holds the raw settings of each bridge by name; they were checked before. */
export function createClaims(
  bridges: readonly Bridge<unknown>[],
  settings: Readonly<Record<string, unknown>>,
): Claims {
  const entries = bridges.map((bridge): Entry => {
    const own = bridge.check?.(settings[bridge.name] ?? []).settings
    const filters = [...bridge.topics, ...(bridge.claims?.(own) ?? [])]
    return {
      name: bridge.name,
      format: bridge.format,
      filters: filters.map((filter) => filter.split('/')),
      contentTypes: bridge.contentTypes,
      decode: (frame) => bridge.decode(frame, own),
    }
  })
  const byTopic = new Map<string, Claimant | undefined>()

  function ofTopic(topic: string): Claimant | undefined {
    if (byTopic.has(topic)) return byTopic.get(topic)
    const levels = topic.split('/')
    const found = entries.find(({ filters }) => filters.some((filter) => matches(filter, levels)))
    if (byTopic.size >= limits.topicsRememberedMax.value) byTopic.delete(byTopic.keys().next().value!)
    byTopic.set(topic, found)
    return found
  }

  return Object.freeze({
    find(frame: Frame) {
      if (frame.contentType !== undefined) {
        const mediaType = frame.contentType.split(';', 1)[0]!.trim().toLowerCase()
        const found = entries.find(({ contentTypes }) => contentTypes.includes(mediaType))
        if (found !== undefined) return found
      }
      return ofTopic(frame.topic)
    },
  })
}

/** MQTT filter matching [MQTT-4.7.1]; topics that begin with $ never match a leading wildcard [MQTT-4.7.2-1]. */
function matches(filter: readonly string[], levels: readonly string[]): boolean {
  if (levels[0]!.startsWith('$') && (filter[0] === '#' || filter[0] === '+')) return false
  for (let i = 0; i < filter.length; i++) {
    if (filter[i] === '#') return true
    if (i >= levels.length || (filter[i] !== '+' && filter[i] !== levels[i])) return false
  }
  return filter.length === levels.length
}
