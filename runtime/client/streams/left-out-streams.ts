/**
 * Streams that a plugin leaves out because it has as many as its ceiling allows. An operator sees them as a
 * warning, a complaint in health and a metric. A stream that changes when there is room again is taken.
 */
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'

export interface LeftOutStreams {
  /** Whether a plugin that has so many streams has room for one more; otherwise notes that it is left out. */
  hasRoom(size: number, id: string): boolean
  /** Called after a stream was deleted. */
  delete(id: string): void
  /** Called after all streams were forgotten. */
  clear(): void
  complaints(): readonly string[]
}

interface LeftOutPorts {
  /** Name of the plugin. */
  readonly plugin: string
  /** Streams that the plugin has at most. */
  readonly most: number
  readonly metrics: Pick<Metrics, 'gauge'>
  readonly log: Pick<Log, 'warn'>
}

export function createLeftOutStreams({ plugin, most, metrics, log }: LeftOutPorts): LeftOutStreams {
  const ids = new Set<string>()
  let isLogged = false
  metrics.gauge('selvedge_plugin_streams_left_out', () => ids.size, `{plugin="${plugin}"}`)

  return Object.freeze({
    hasRoom(size, id) {
      if (size < most) {
        ids.delete(id)
        return true
      }
      if (ids.size < limits.leftOutStreamsMax.value) ids.add(id)
      if (!isLogged) log.warn('plugin.streams-left-out', { plugin, most })
      isLogged = true
      return false
    },
    delete: (id) => void ids.delete(id),
    clear: () => ids.clear(),
    complaints: () =>
      ids.size === 0 ? [] : [`${ids.size} streams are left out: ${plugin} takes ${most} at most`],
  } satisfies LeftOutStreams)
}
