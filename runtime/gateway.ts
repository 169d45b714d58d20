/**
 * The composition root: opens every part in order, passes each the ports it needs, and returns an object that
 * closes them all. It is the table of contents of the architecture and contains no domain rule.
 *
 * Order: the broker, which stores data, opens first and closes last. The parts that send data open next. The
 * interfaces, which accept data, open last and close first.
 */
import type { ClockAndLog } from '#base/process/instruments.ts'
import { createOutflow } from '#base/process/outflow.ts'
import { watchProcess } from '#base/process/process-metrics.ts'
import { keepTicksFast } from '#base/process/tick-objects.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { reportClock } from '#base/time/clock-report.ts'
import { openBroker } from '#broker/open-broker.ts'
import { viaAliases } from '#config/load/gateway-id.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { openDelivery } from '#delivery/open-delivery.ts'
import type { Failure } from '#delivery/verdict.ts'
import { createDownward } from '#downward/downward.ts'
import { openFederation } from '#federation/open-federation.ts'
import { openHost, type PluginHost } from '#host/open-host.ts'
import { createDocumentFetcher } from '#http/listener/document-fetch.ts'
import { openModels } from '#inference/open-models.ts'
import { openPublisher } from '#mqtt/notify/lazy-publisher.ts'
import { plugins } from '#plugins/registry.ts'
import { openUplinks } from '#uplink/open-uplinks.ts'
import { openInterfaces } from './interfaces.ts'

export interface GatewayPorts extends ClockAndLog {
  readonly settings: Settings
  /** Called when an essential part failed; the process must end. */
  readonly onFault: (error: unknown) => void
}

export interface Gateway {
  readonly httpPort: number | undefined
  readonly mqttPort: number | undefined
  /** Ports of plugins with listeners of their own, by plugin name. */
  readonly pluginPorts: Readonly<Record<string, number>>
  close(): Promise<void>
}

const notYet: Failure = { ok: false, kind: 'status', status: 503, reason: 'the gateway is starting' }

/**
 * Opens all parts. If a part fails, the parts opened before are closed.
 * @throws GatewayError store.locked, store.newer, store.corrupt, config.invalid (port in use, file with wrong
 * mode).
 */
export async function createGateway({ settings, clock, log, onFault }: GatewayPorts): Promise<Gateway> {
  await using opened = new AsyncDisposableStack()
  const metrics = createMetrics()
  watchProcess(metrics)
  void keepTicksFast()
  reportClock(clock, { log, metrics })
  const outflow = opened.adopt(createOutflow({ clock, log, metrics }), ({ close }) => close())
  const alias = viaAliases(settings.data)
  const { allowLoopback, fetchContexts } = settings.outbound
  const fetchDocument = fetchContexts ? createDocumentFetcher({ allowLoopback }) : undefined

  const broker = await openBroker({ opened, settings, fetchDocument, clock, log, metrics, onFault })
  const { main, contexts, tenant } = broker
  const federation = openFederation({ opened, settings, tenant, contexts, alias, clock, log, metrics })
  const { peer, tunnels } = federation
  const downward = createDownward(
    {
      database: main.database,
      door: main.door,
      broker: main.broker,
      contexts,
      peer,
      alias,
      clock,
      random: Math.random,
      log,
      metrics,
    },
    settings,
  )
  /** Plugins, which open later; until then notifications for them are repeated. */
  let components: Pick<PluginHost, 'notify'> = { notify: async () => notYet }
  const publisher = openPublisher({ opened, settings, clock })
  const delivery = openDelivery({
    opened,
    settings,
    contexts,
    publish: publisher.send,
    tunnel: downward.send,
    component: (name, request) => components.notify(name, request),
    clock,
    log,
    metrics,
  })
  const uplinks = openUplinks({ opened, settings, contexts, peer, alias, clock, log, metrics })
  opened.defer(broker.connect({ outbox: delivery.outbox, uplinks: uplinks.open }))
  const models = await openModels({ opened, settings, contexts, clock, log, metrics })
  const host = openHost({
    settings,
    loaders: plugins,
    core: contexts.core,
    following: main.following,
    onCommit: main.door.onCommit,
    copyBack: broker.copyBack,
    models,
    validity: broker.validity,
    outflow,
    clock,
    log,
    metrics,
  })
  components = host
  let isReady = false
  const interfaces = await openInterfaces({
    opened,
    settings,
    broker,
    federation,
    notify: delivery.send,
    uplinks: uplinks.operations,
    downward: () => ({ ...downward.status(), connected: tunnels.statuses() }),
    host,
    models,
    ownClients: publisher.clients,
    alias,
    unreadiness: () => [...(isReady ? [] : ['starting']), ...broker.unreadiness()],
    complaints: () => [
      ...broker.complaints(),
      ...host.complaints(),
      ...models.complaints(),
      ...uplinks.complaints(),
    ],
    outflow,
    clock,
    log,
    metrics,
  })
  const { app, httpPort, mqttPort } = interfaces
  downward.start(app)
  opened.defer(downward.close)
  opened.defer(host.close)
  await host.listen(app, httpPort, interfaces.publish)

  isReady = true
  federation.forwarding.start(broker.names())
  const closing = opened.move()
  return Object.freeze({
    httpPort,
    mqttPort,
    pluginPorts: host.ports(),
    close: () => closing.disposeAsync(),
  })
}
