/**
 * Follows the streams of another broker by a subscription there, and finds out when it is unreachable. An
 * outage begins when two more requests fail after the first one, so that one lost request is none.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { itemsOf, notifiedItems } from '#client/requests/broker-messages.ts'
import type { BrokerClient } from '#client/requests/broker-requests.ts'
import { sensorOf } from '#client/streams/stream-entities.ts'
import { createBrokerFollower, type FollowedFacts } from '#client/subscriptions/broker-follower.ts'
import type { HostBase, Json } from '#contract'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { FailureStatements } from './failure-statements.ts'
import type { FollowedStreams, FollowerPorts } from './followed-streams.ts'
import { failureSubscriptions, streamWatch } from './stream-watch.ts'

export interface RemoteWatchPorts extends FollowerPorts {
  readonly table: FailureStatements
  readonly client: BrokerClient
  /** The broker is unreachable, or answers again: then without a reason. */
  readonly setOutage: (reason: string | undefined) => void
}

const confirmations = 2

export function createRemoteWatch(ports: RemoteWatchPorts, host: HostBase<unknown>): FollowedStreams {
  const { table, client, known, unknown, virtualStream, readAnew, callback, setOutage } = ports
  const { clock, log, signal } = host
  let facts: FollowedFacts = { subscriptions: table.watchIds() }
  let state: string | undefined
  let notifications = 0
  let isAway = false
  let confirming: Promise<void> | undefined

  function setState(next: string): void {
    state = next
    if (next === 'down') {
      confirming ??= confirm().finally(() => {
        confirming = undefined
      })
    } else if (isAway) {
      isAway = false
      setOutage(undefined)
    }
  }

  async function confirm(): Promise<void> {
    const path = '/ngsi-ld/v1/subscriptions?limit=1'
    const headers = { Accept: 'application/json' }
    for (let i = 0; i < confirmations; i++) {
      await delay(limits.orchestratorProbeMs.value, undefined, { signal, ref: false }).catch(() => undefined)
      const answer = await client.request({ method: 'GET', path, headers }, [200])
      if (signal.aborted || 'value' in answer || answer.trouble.kind !== 'down' || state !== 'down') return
      if (i + 1 < confirmations || isAway) continue
      isAway = true
      setOutage(answer.trouble.reason)
    }
  }

  const follower = createBrokerFollower({
    plugin: 'orchestrator',
    watches: [streamWatch],
    idPrefix: failureSubscriptions,
    client,
    row: {
      state: () => state,
      facts: () => facts,
      set(change) {
        if (change.state !== undefined) setState(change.state)
        if (change.facts === undefined) return
        const before = JSON.stringify(facts.subscriptions)
        facts = change.facts
        if (JSON.stringify(facts.subscriptions) !== before) table.saveWatchIds(facts.subscriptions ?? {})
      },
    },
    async read() {
      readAnew()
      return undefined
    },
    isNotified: () => notifications > 0,
    // One address is for all streams.
    base: () => callback(streamWatch.purpose),
    callback: (address) => address,
    clock,
    log,
    signal,
  })

  return Object.freeze({
    start: follower.start,
    receive(body: Json): void {
      const { entities, deleted, unreadable } = itemsOf(notifiedItems(body) ?? [], clock.now())
      if (entities.length === 0 && deleted.length === 0)
        throw badRequestData(unreadable[0] ?? 'has no entity', 'data')
      notifications++
      for (const id of deleted) known(id)
      for (const entity of entities) {
        if (!known(entity.id)) unknown(entity.id)
        virtualStream(() => sensorOf(entity))
      }
      follower.reportHeard()
    },
    complaints: () => {
      if (state === 'down' || state === 'refused')
        return [`streams are not watched: ${client.address} is ${state}: ${facts.reason ?? ''}`]
      return facts.silence === undefined ? [] : [`streams are not watched: ${facts.silence.reason}`]
    },
    async close(): Promise<void> {
      await follower.close()
      await confirming
    },
  })
}
