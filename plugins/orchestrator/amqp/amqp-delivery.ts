/**
 * Publishes notifications to the AMQP server. While it is away they wait in the outbox. After each connection
 * all exchanges and queues are declared again, since a restart of the server deletes those that are not
 * durable. A lane sends only to declared ones.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Clock } from '#base/time/clock.ts'
import type { ExchangeConnection, OpenExchanges, SourceBroker } from '#contract'
import { createLanePump } from '#plugins/orchestrator/notifications/lane-pump.ts'
import type { NotificationOutbox } from '#plugins/orchestrator/notifications/notification-outbox.ts'
import type { ClientDelivery } from '#plugins/orchestrator/subscriptions/subscription-form.ts'
import type { LeftoverNames } from './leftover-statements.ts'
import {
  type AmqpName,
  amqpMessageOf,
  type ClientDeliveries,
  declarationsFor,
  declarationsOf,
  deliveriesOf,
  nameOf,
} from './topology.ts'

export interface AmqpDeliveryPorts {
  readonly open: OpenExchanges
  readonly outbox: NotificationOutbox
  /** Clients of a subscription; undefined if it does not exist. */
  readonly clientsOf: (id: string) => ClientDeliveries | undefined
  readonly ids: () => Iterable<string>
  readonly leftovers: LeftoverNames
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Log
  readonly signal: AbortSignal
}

export async function openAmqpDelivery(ports: AmqpDeliveryPorts, server: SourceBroker) {
  const { outbox, clientsOf, ids, leftovers, clock, log, signal } = ports
  const address = server.url
  /** Subscriptions to declare, and who waits for it. */
  const pending = new Map<string, PromiseWithResolvers<void> | undefined>()
  const refusals = new Map<string, string>()
  let isWorking = false
  let reason: string | undefined = 'not connected yet'
  let connection: ExchangeConnection | undefined

  const pump = createLanePump({
    outbox,
    clock,
    send: ({ subscription, name }, { body }, done) =>
      connection!.publish(amqpMessageOf(subscription, name as ClientDelivery, body), done),
    failed: (error) => log.error('plugin.failed', { plugin: 'orchestrator', during: 'sending', error }),
  })

  function declareAll(): void {
    for (const id of ids()) if (!pending.has(id)) pending.set(id, undefined)
    void work()
  }

  /** Deletes and declares, one after the other, until nothing is left or the connection is lost. */
  async function work(): Promise<void> {
    if (isWorking) return
    isWorking = true
    try {
      for (const [id, waiter] of pending) {
        if (connection?.isConnected() !== true) break
        pending.delete(id)
        await declare(id)
        waiter?.resolve()
      }
      await removeLeftovers()
    } finally {
      isWorking = false
      if (connection?.isConnected() !== true) release()
      else if (pending.size > 0) void work()
    }
  }

  async function declare(id: string): Promise<void> {
    const clients = clientsOf(id)
    if (clients === undefined) return
    const failures: string[] = []
    // A stream or queue that cannot be declared holds up only its own lane.
    for (const name of deliveriesOf(clients)) {
      try {
        for (const declaration of declarationsFor(id, clients, name)) {
          leftovers.remove(nameOf(declaration))
          await connection!.declare(declaration)
        }
        pump.start({ subscription: id, name })
      } catch (error) {
        failures.push((error as Error).message)
      }
    }
    const isLost = connection?.isConnected() !== true
    if (isLost) pending.set(id, undefined)
    const text = failures.join('; ')
    if (text === '') {
      refusals.delete(id)
      return
    }
    if (!isLost && refusals.get(id) !== text)
      log.warn('orchestrator.not-declared', { subscription: id, reason: text })
    refusals.set(id, text)
  }

  async function removeLeftovers(): Promise<void> {
    let last: AmqpName | undefined
    for (;;) {
      const name = leftovers.after(last)
      if (name === undefined || pending.size > 0 || connection?.isConnected() !== true) return
      last = name
      try {
        await connection.remove(name)
        leftovers.remove(name)
      } catch {
        // The next check tries again.
      }
    }
  }

  /** Lets those go who wait for a declaration; it is made after the next connection. */
  function release(): void {
    for (const [id, waiter] of pending) {
      waiter?.resolve()
      pending.set(id, undefined)
    }
  }

  const checking = setInterval(() => {
    for (const id of refusals.keys()) if (!pending.has(id)) pending.set(id, undefined)
    void work()
  }, limits.orchestratorCheckMs.value).unref()

  connection = await ports.open(server, {
    connected() {
      reason = undefined
      log.info('orchestrator.amqp-connected', { server: address })
      declareAll()
    },
    lost(why) {
      reason = why
      log.warn('orchestrator.amqp-lost', { server: address, reason: why })
      pump.lost()
    },
    refused(why) {
      if (reason !== why) log.warn('orchestrator.amqp-refused', { server: address, reason: why })
      reason = why
    },
  })

  return Object.freeze({
    /**
     * Declares all of a subscription. Resolves when that is done or refused, and after
     * `orchestratorDeclareMs`; at once if not connected. It is declared later then.
     */
    async declare(id: string): Promise<void> {
      if (connection?.isConnected() !== true || signal.aborted) return
      const waiter = pending.get(id) ?? Promise.withResolvers<void>()
      pending.set(id, waiter)
      void work()
      const late = delay(limits.orchestratorDeclareMs.value, undefined, { signal, ref: false })
      await Promise.race([waiter.promise, late.catch(() => undefined)])
    },
    /** Deletes what a subscription does not need any more. */
    remove(id: string, before: ClientDeliveries): void {
      const clients = clientsOf(id)
      const needed = clients === undefined ? [] : declarationsOf(id, clients)
      const names = new Set(needed.map((one) => JSON.stringify(nameOf(one))))
      for (const declaration of declarationsOf(id, before)) {
        const name = nameOf(declaration)
        if (!names.has(JSON.stringify(name))) leftovers.add(name)
      }
      const kept = clients === undefined ? [] : deliveriesOf(clients)
      for (const name of deliveriesOf(before)) if (!kept.includes(name)) pump.stop({ subscription: id, name })
      if (clients === undefined) refusals.delete(id)
      void work()
    },
    /** New notifications of a subscription can be read. */
    arrived(id: string): void {
      for (const name of deliveriesOf(clientsOf(id) ?? new Map())) pump.wake({ subscription: id, name })
    },
    status: () => ({
      server: address,
      state: connection?.isConnected() === true ? 'connected' : 'waiting',
      ...(reason === undefined ? {} : { reason }),
      inFlight: pump.inFlight(),
      rejecting: pump.paused().slice(0, limits.orchestratorShown.value),
    }),
    complaints: (): readonly string[] => [
      ...(reason === undefined ? [] : [`notifications wait for ${address}: ${reason}`]),
      ...pump
        .late(limits.orchestratorConfirmMs.value)
        .slice(0, limits.orchestratorShown.value)
        .map((id) => `${address} does not confirm notifications of ${id}`),
      ...[...refusals]
        .slice(0, limits.orchestratorShown.value)
        .map(([id, why]) => `${id} has no exchange: ${why}`),
    ],
    async close(): Promise<void> {
      clearInterval(checking)
      pump.close()
      await connection?.close()
      release()
    },
  })
}
