/** A centre restored from an older copy is reconciled; unreported losses are discarded. */
import { expect, it } from 'vitest'
import { createCentralBroker } from '#uplink/centre/central-broker.ts'
import { createConnectivity } from '#uplink/centre/connectivity.ts'
import { newState } from '#uplink/progress/uplink-state.ts'
import { createScopePrefix } from '#uplink/steps/scope-prefix.ts'
import { createReconcileSchedule, type ReconcileSchedulePorts } from './reconcile-schedule.ts'

/** A centre that reports its log position, or nothing. */
function comparingWith(report: () => object | number | undefined, onForget: () => void) {
  const clock = { now: () => 5000, monotonic: () => performance.now() }
  const state = newState({ n: 7, at: 900 }, undefined)
  const peer = {
    close: () => undefined,
    exchange({ url }: { url: string }) {
      const said = url.endsWith('/info') ? { selvedge: '0' } : report()
      if (said === undefined)
        return Promise.resolve({ failure: 'unreachable', reason: 'it is away' } as const)
      const status = typeof said === 'number' ? said : 200
      return Promise.resolve({ status, headers: {}, text: JSON.stringify(said) })
    },
  }
  const centre = createCentralBroker(
    peer,
    { base: 'http://centre/ngsi-ld/v1', headers: {}, alias: 'here' },
    clock,
  )
  const connectivity = createConnectivity({
    clock,
    random: () => 0,
    probe: () => Promise.resolve(true),
    onChange: () => undefined,
    isGateClosed: () => false,
  })
  const open = () =>
    createReconcileSchedule({
      id: 'up',
      state,
      connectivity,
      clock,
      alias: 'here',
      centres: { live: centre, backfill: centre },
      losses: { forget: onForget },
      log: { warn: () => undefined },
      lookups: { scopePrefix: createScopePrefix(undefined), selection: { types: undefined } },
    } as unknown as ReconcileSchedulePorts)
  return { open, state, close: connectivity.close }
}

it('discards unreported losses when the centre was restored', async () => {
  let said: object = { position: 40 }
  let forgot = 0
  const { open, state, close } = comparingWith(
    () => said,
    () => forgot++,
  )
  const look = (): Promise<boolean> => open().checkCentre()
  expect(await look()).toBe(true)
  expect([state.centreAt, state.reconcile, forgot]).toEqual([40, undefined, 0])
  said = { position: 41, restoredAt: 4000 }
  expect(await look()).toBe(true)
  expect([state.centreAt, state.mayLackGaps, forgot]).toEqual([41, true, 1])
  expect(state.reconcile).toMatchObject({ reason: 'restored' })
  close()
})

it('trusts the content of a centre that just confirmed it, or never can', async () => {
  let said: object | number | undefined = { position: 40 }
  let forgot = 0
  const { open, close } = comparingWith(
    () => said,
    () => forgot++,
  )
  const comparing = open()
  expect([await comparing.isCentreIntact(), forgot]).toEqual([true, 0])
  for (const trouble of [undefined, 429, 503]) {
    said = trouble
    expect(await comparing.isCentreIntact()).toBe(false)
  }
  // A centre that responds without a position is not waited for.
  for (const other of [404, 400, 500, 302, {}]) {
    said = other
    expect(await comparing.isCentreIntact()).toBe(true)
  }
  // A check that is not due does not notice.
  said = { position: 41, restoredAt: 4000 }
  expect([await comparing.checkCentre(), forgot]).toEqual([false, 0])
  expect([await comparing.isCentreIntact(), forgot]).toEqual([true, 1])
  close()
})
