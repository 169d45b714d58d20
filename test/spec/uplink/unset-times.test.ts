/**
 * Times awaiting correction are never sent, not even by a reconciliation in progress when the clock was
 * doubted. The other broker is made up; the compared data is real.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { systemClock } from '#base/time/clock.ts'
import type { Peer } from '#federation/peer.ts'
import type { Entity } from '#ngsi-ld/entity/entity.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { createBoard } from '#test/kit/board.ts'
import { historyOf, type OpenBroker, openBroker, temporaryFolder } from '#test/kit/broker.ts'
import { createCentralBroker } from '#uplink/centre/central-broker.ts'
import { createCurrentSteps } from '#uplink/progress/current-steps.ts'
import { createReconciler, newTask } from '#uplink/reconcile/reconcile.ts'
import { createLookups } from '#uplink/steps/change-steps.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { selectionOf } from '#uplink/steps/uplink-selection.ts'

const id = 'urn:x:1'
const day = 86_400_000

let temporary: ReturnType<typeof temporaryFolder>
let site: ReturnType<typeof createBoard>
let clock: ReturnType<typeof site.start>
let open: OpenBroker
beforeEach(async () => {
  temporary = temporaryFolder()
  site = createBoard()
  site.machine.wrongBy = 0
  site.machine.setAt = 1
  clock = site.start()
  open = await openBroker(temporary.folder, { clock })
})
afterEach(async () => {
  await open.close()
  temporary.remove()
})

/** Like the intake, with the time of reception. */
const observe = (value: number): Promise<unknown> => {
  const time = clock.now()
  return open.main.door.commit((stage) => {
    const stretch = clock.trust!.stretch()
    const told = stretch === undefined ? stage : stage.unset(stretch, new Set([time]))
    const stream = open.main.streams.open(told, open.main.documents.find(told, id)!, 'a', '')
    open.main.observer.observeStream(told, stream, time, value, false)
  })
}

/** Reconciles with a broker without past values; something happens before the local histories are read. */
function compareHistories(
  { following, digests }: OpenBroker['inside'],
  {
    meanwhile,
    deliver,
  }: { meanwhile: () => Promise<void>; deliver: (step: Step & { kind: 'past' }) => void },
): Promise<boolean> {
  const scopePrefix = createScopePrefix(undefined)
  const selection = selectionOf({ notification: {} } as Subscription)
  const lookups = createLookups(following, { selection, scopePrefix }, () => false)
  const current = createCurrentSteps({
    following,
    lookups,
    state: { position: following.position(), refresh: undefined },
  })
  const textOf = (url: string): string => (url.includes('/entities?') ? '[]' : '{"histories":{}}')
  const exchange: Peer['exchange'] = ({ url }) =>
    Promise.resolve({ status: 200, headers: {}, text: textOf(url) })
  const peer = { exchange, close: () => undefined }
  const centre = createCentralBroker(
    peer,
    { base: 'http://centre/ngsi-ld/v1', headers: {}, alias: 'a' },
    clock,
  )
  const reconciler = createReconciler({
    following,
    digests,
    centre,
    live: centre,
    current,
    lookups,
    alias: 'a',
    uplink: 'up',
    types: undefined,
    // It always responds.
    until: (ask) => ask() as Promise<never>,
    once: (ask) => ask() as Promise<never>,
    ready: () => Promise.resolve(true),
    isStopped: () => false,
    deliver(layer) {
      for (const step of layer.steps) if (step.kind === 'past') deliver({ ...step, kind: 'past' })
      return Promise.resolve(true)
    },
    deliverNow: () => meanwhile().then(() => true),
    ensureDeleted: () => Promise.resolve(true),
  })
  return reconciler.portion({ ...newTask(0, { reason: 'asked' }), phase: 'histories', after: 0 })
}

it('omits later data whose times await correction', async () => {
  const foretold = msToDateTime(systemClock.now() + day)
  const a = { type: 'Property', value: 0, observedAt: msToDateTime(systemClock.now() - day) }
  await open.broker.create({ id, type: 'T', a } as Entity, 'http')
  // Data received now is older than the current value.
  await open.broker.partial(id, 'a', { value: 100, observedAt: foretold }, { by: 'http' })
  await observe(1)
  const told: unknown[] = []
  const compared = await compareHistories(open.inside, {
    async meanwhile() {
      site.machine.wrongBy = 30 * day
      clock.check()
      expect(open.inside.following.isHeld()).toBe(true)
      await observe(2)
    },
    deliver: (step) => told.push(...step.attributes.get('a')!.map(({ value }) => value)),
  })
  expect(compared).toBe(true)
  expect(told).toEqual([0, 1, 100])
  expect(historyOf(open, id, 'a').map(([, value]) => value)).toEqual([0, 1, 2, 100])
})
