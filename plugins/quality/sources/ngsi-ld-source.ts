/**
 * One NGSI-LD broker that streams name as their source. It is polled: the history of each stream's
 * observation entity is read from the latest counted observation on. So each observation counts once, also
 * after a restart; observations that are older than the latest one are not seen.
 */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import { type Capabilities, type PastValue, streamHistory } from '#contract'
import { sosa } from '#contract/vocabulary.ts'
import { dayMs } from '#plugins/quality/measures/day-table.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { AllowedHost } from './access-details.ts'
import type { FollowedSource, StreamRoute } from './source.ts'

export interface NgsiLdSourcePorts {
  readonly remote: Capabilities['remote']
  readonly streams: KnownStreams
  readonly clock: Clock
  readonly log: Log
}

export function createNgsiLdSource(
  { remote, streams, clock, log }: NgsiLdSourcePorts,
  { url: address, tokenFile, caFile }: AllowedHost,
): FollowedSource {
  // The settings allow it, also at a loopback address.
  const broker = remote({ url: address, tokenFile, caFile, isConfigured: true })
  const closing = new AbortController()
  let routes: readonly StreamRoute[] = []
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined
  let isConnected = false
  let reason: string | undefined
  let hasPolled = false
  let isReported = false
  let failures = 0
  let observations = 0
  let lastMessageAt: number | undefined

  async function poll(): Promise<void> {
    let problem: string | undefined
    for (const route of routes) {
      if (closing.signal.aborted) return
      try {
        await readStream(route)
      } catch (error) {
        failures++
        problem = (error as Error).message
        // A broker that refuses one stream may answer for others.
        if (!(error instanceof GatewayError) || error.code !== 'peer.refused') break
      }
    }
    if (closing.signal.aborted) return
    if (problem === undefined && !isConnected) log.info('quality.source-connected', { source: address })
    // At the first poll, a broker of this gateway may not listen yet.
    if (problem !== undefined && hasPolled && !isReported)
      log.warn('quality.source-unreachable', { source: address, reason: problem })
    isReported = problem !== undefined && hasPolled
    hasPolled = true
    isConnected = problem === undefined
    reason = problem
    schedule(limits.qualitySourcePollMs.value)
  }

  function schedule(delayMs: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      polling = poll()
    }, delayMs)
  }

  /** Counts the observations of a stream since the latest one, or since a day ago, in order of time. */
  async function readStream({ stream, access }: StreamRoute): Promise<void> {
    const id = 'entity' in access.place ? access.place.entity : ''
    const from = stream.record.lastAt === undefined ? clock.now() - dayMs : stream.record.lastAt + 1
    const slices: (readonly PastValue[])[] = []
    const range = { from, last: limits.qualitySourcePolled.value, signal: closing.signal }
    const key = { id, name: sosa.hasSimpleResult, dataset: '' }
    for await (const slice of streamHistory(broker, key, range)) slices.push(slice)
    if (closing.signal.aborted || slices.length === 0) return
    for (const { time, value, committed } of slices.toReversed().flat()) {
      streams.count(stream.id, { time, value, committedAt: committed })
      observations++
    }
    lastMessageAt = clock.now()
  }

  async function close(): Promise<void> {
    closing.abort()
    clearTimeout(timer)
    await polling
    broker.close()
  }

  return Object.freeze({
    address,
    route(wanted) {
      const isFirst = routes.length === 0
      routes = wanted
      if (isFirst) schedule(0)
      return 0
    },
    status: () => ({
      source: address,
      state: isConnected ? 'connected' : 'unreachable',
      streams: routes.length,
      observations,
      failures,
      lastMessageAt: lastMessageAt === undefined ? null : new Date(lastMessageAt).toISOString(),
      reason,
    }),
    complaint: () => (isReported ? `the source ${address} is unreachable: ${reason}` : undefined),
    close,
    end: close,
  } satisfies FollowedSource)
}
