/**
 * A broker in this process on the real write path: tenants of a temporary folder, the writer thread, SQLite. Opening
 * the same folder again is a restart. Time can be moved ahead, so that upkeep is due without waiting, and single
 * groups can be refused before they reach the writer, as a full disk does.
 */
import { AssertionError } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics, type Metrics } from '#base/register/metrics.ts'
import { type Clock, systemClock } from '#base/time/clock.ts'
import type { ObservationVerdict } from '#broker/state/streams.ts'
import type { Tenant, TenantSettings } from '#broker/tenant/tenant.ts'
import type { TenantBroker } from '#broker/tenant/tenant-broker.ts'
import type { TenantParts } from '#broker/tenant/tenant-connections.ts'
import { openTenants, type Tenants } from '#broker/tenant/tenants.ts'
import type { Json } from '#contract/pipeline.ts'
import type { Delivery } from '#store/tables/delivery-rows.ts'
import { createWriter, type Writer } from '#store/writer/writer.ts'
import type { GroupMessage } from '#store/writer/writer-protocol.ts'
import { unmended } from './mending.ts'

/** A clock that runs as the machine's does, but can be set. */
export interface SettableClock extends Clock {
  /** Moves both clocks ahead, as if time had passed. */
  pass(ms: number): void
  /** Sets the wall clock only, back or forth. */
  jump(ms: number): void
}

export function settableClock(): SettableClock {
  let passed = 0
  let jumped = 0
  return {
    now: () => systemClock.now() + Math.round(passed) + jumped,
    monotonic: () => systemClock.monotonic() + passed,
    pass(ms) {
      passed += ms
    },
    jump(ms) {
      jumped += ms
    },
  }
}

export interface OpenBroker {
  readonly tenants: Tenants
  readonly main: Tenant
  readonly broker: TenantBroker
  /** What the sender of deliveries gets of the main tenant. */
  readonly inside: TenantParts
  readonly clock: SettableClock
  readonly metrics: Metrics
  /** Deliveries announced since the broker was opened. */
  readonly announced: Delivery[]
  readonly logged: { readonly event: string; readonly [fact: string]: unknown }[]
  /** The next group with something in it leaves no trace, for this reason. */
  refuseNextGroup(error: GatewayError): void
  /** From now on, every group for which `errorOf` returns an error fails with it and leaves no trace. */
  refuseGroups(errorOf: (group: Omit<GroupMessage, 'kind'>) => GatewayError | undefined): void
  readonly writer: Writer
  /** Runs all upkeep that is due, after `ms` have passed. */
  upkeep(ms?: number): Promise<void>
  close(): Promise<void>
}

export interface BrokerOptions extends Partial<TenantSettings> {
  readonly clock?: SettableClock
  /** Shared by several brokers one after the other; else it has one of its own. */
  readonly writer?: Writer
}

/** A writer thread whose death is a failure of the test. */
export function immortalWriter(): Writer {
  return createWriter((error) => {
    throw new AssertionError({ message: `the writer thread died: ${String(error)}` })
  })
}

/** Longer than any tail may age. */
export const ages = 31 * 60_000

export function temporaryFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export async function openBroker(folder: string, options: BrokerOptions = {}): Promise<OpenBroker> {
  const { clock = settableClock(), writer = immortalWriter(), ...settings } = options
  const metrics = createMetrics()
  const announced: Delivery[] = []
  const logged: OpenBroker['logged'] = []
  let inside: TenantParts | undefined
  let errorOfNext: GatewayError | undefined
  let errorOfGroup: Parameters<OpenBroker['refuseGroups']>[0] = () => undefined
  const refusing: Writer = {
    ...writer,
    write(group, done) {
      const error = errorOfNext ?? errorOfGroup(group)
      errorOfNext = undefined
      if (error === undefined) writer.write(group, done)
      else setImmediate(() => done(error, { chunks: 0, logBytes: 0 }))
    },
  }
  const log = createLog({ level: 'info', clock, write: (line) => logged.push(JSON.parse(line)) })
  const tenants = await openTenants(
    { ...unmended(folder, log), writer: refusing, clock, log, metrics },
    { lingerMs: 0, synchronous: 'FULL', writebackMs: 60_000, history: { maxBytes: 1e12 }, ...settings },
  )
  tenants.connect({
    outbox(tenant) {
      if (tenant.name === '') inside = tenant
      return {
        committed: (deliveries) => announced.push(...deliveries),
        reread: () => undefined,
        listen: () => ({ ready: () => undefined, end: () => undefined }),
        confirm: () => Promise.resolve(),
        close: () => Promise.resolve(),
      }
    },
    uplinks: () => ({ close: () => Promise.resolve() }),
  })
  const { main } = tenants
  return {
    tenants,
    main,
    writer,
    broker: main.broker,
    inside: inside!,
    clock,
    metrics,
    announced,
    logged,
    refuseNextGroup(error) {
      errorOfNext = error
    },
    refuseGroups(errorOf) {
      errorOfGroup = errorOf
    },
    async upkeep(ms = ages) {
      clock.pass(ms)
      // A look for what is due, then what became due by it; each rides along with a group.
      for (let i = 0; i < 4; i++) {
        await main.door.commit(() => undefined)
        clock.pass(1001)
      }
    },
    async close() {
      await tenants.close()
      if (options.writer === undefined) await writer.end()
    },
  }
}

/** An observation as a device makes it: by the stream's own rules about what is new, late and known. */
export function observe(
  { main }: Pick<OpenBroker, 'main'>,
  id: string,
  name: string,
  time: number,
  value: Json,
  { dataset = '', mirror }: { dataset?: string; mirror?: string } = {},
): Promise<ObservationVerdict> {
  return main.door.commit((stage) => {
    const draft = main.documents.find(stage, id)
    if (draft === undefined) throw new GatewayError('ngsi-ld.not-found', `there is no ${id}`)
    const stream = main.streams.open(stage, draft, name, dataset, mirror)
    return main.observer.observeStream(stage, stream, time, value, false)
  })
}

/** The history of an attribute by observedAt: time, value and unit of each instance. */
export function historyOf(
  { broker }: Pick<OpenBroker, 'broker'>,
  id: string,
  name: string,
): readonly (readonly [time: number, value: unknown, unit: unknown])[] {
  const history = broker.history(id, { timeproperty: 'observedAt', limit: 10_000 })
  return (history?.attributes.get(name) ?? []).map(({ observedAt, instance }) => {
    return [observedAt!, instance.value, instance.unitCode]
  })
}
