/**
 * Follows the streams of this gateway's own broker through the log. A subscription there only shows what is
 * watched.
 */
import { limits } from '#base/limits/limits.ts'
import { sensorOf } from '#client/streams/stream-entities.ts'
import { createOwnSubscriptions } from '#client/subscriptions/own-subscriptions.ts'
import type { ChangeBatch, Host } from '#contract'
import { faultTerms, iotStream } from '#contract/vocabulary.ts'
import type { FailureStatements } from './failure-statements.ts'
import type { FollowedStreams, FollowerPorts } from './followed-streams.ts'
import { failureSubscriptions, streamWatch } from './stream-watch.ts'

const types = new Set([iotStream.IotStream, iotStream.StreamObservation])

export function createLogWatch(
  { table, known, unknown, virtualStream, readAnew, callback }: FollowerPorts & { table: FailureStatements },
  { mdr, changes, log, signal }: Host<unknown, 'mdr' | 'changes'>,
): FollowedStreams {
  const subscriptions = createOwnSubscriptions({
    broker: mdr,
    plugin: 'orchestrator',
    watches: [streamWatch],
    idPrefix: failureSubscriptions,
    callback,
    ids: table.watchIds,
    saveIds: table.saveWatchIds,
    log,
    signal,
  })

  function take({ changed, deleted, observed }: ChangeBatch): void {
    for (const id of deleted) known(id)
    for (const state of changed) {
      if (!known(state.id)) unknown(state.id)
      // Fault detection writes the state of a virtual sensor with its first value.
      if (state.types.includes(iotStream.IotStream)) virtualStream(() => sensorOf(state.entity()))
    }
    // In the log, a state that changes alone is an observation.
    for (const { id, name } of observed) {
      if (name !== faultTerms.state) continue
      if (!known(id)) unknown(id)
      virtualStream(() => {
        const found = changes.entity(id)
        return found && sensorOf(found.entity())
      })
    }
  }

  const check = (): void =>
    void subscriptions.check().catch((error: unknown) => {
      log.error('plugin.failed', { plugin: 'orchestrator', during: 'checking subscriptions', error })
    })
  let following: { close(): void } | undefined
  let timer: NodeJS.Timeout | undefined

  return Object.freeze({
    start(): void {
      following ??= changes.follow(changes.position(), {
        types,
        observes: 'newest',
        take,
        readAnew() {
          const position = changes.position()
          readAnew()
          return position
        },
      })
      timer ??= setInterval(check, limits.ownSubscriptionsCheckMs.value).unref()
      check()
    },
    complaints: () => subscriptions.failures(),
    async close(): Promise<void> {
      clearInterval(timer)
      following?.close()
    },
  })
}
