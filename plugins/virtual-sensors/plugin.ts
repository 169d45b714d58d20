/**
 * The virtual sensor creator: predicts the values of a broken sensor, or of a place without a sensor, from
 * the sensors around it. It publishes them as a sensor of its own. This file connects the parts.
 */
import { limits } from '#base/limits/limits.ts'
import { createYield } from '#base/load/yielding.ts'
import { version } from '#base/register/version.ts'
import { createBrokerClient } from '#client/requests/broker-requests.ts'
import { definePlugin, type Host, type Running } from '#contract'
import { createOwnContributions } from './brokers/own-contributions.ts'
import { createRemoteContributions } from './brokers/remote-contributions.ts'
import { createBrokerEntities } from './candidates/broker-entities.ts'
import { createCreator } from './lifecycle/creator.ts'
import { createPredictions } from './lifecycle/predictions.ts'
import { createSensorTable, tables } from './state/sensor-statements.ts'
import { createSourceReadings } from './state/source-readings.ts'
import { createVirtualSensorRoutes } from './virtual-sensor-routes.ts'

/** The plugin's section of the settings. */
export interface VirtualSensorsSettings {
  /** mdr, or the address of a broker. */
  readonly broker: string
  readonly tenant?: string | undefined
  readonly tokenFile?: string | undefined
  readonly caFile?: string | undefined
  readonly callbackUrl?: string | undefined
}

const needs = ['mdr', 'changes', 'database', 'models', 'remote'] as const

export default definePlugin<VirtualSensorsSettings, (typeof needs)[number]>({
  name: 'virtual-sensors',
  version,
  summary: 'Replaces broken sensors by predictions from those around them',
  needs,
  tables,
  start,
})

const mdr = 'mdr'

function start(host: Host<VirtualSensorsSettings, (typeof needs)[number]>): Running {
  const { database, clock, log, signal, settings, addresses, fail } = host
  const { broker: url, tenant, tokenFile, caFile, callbackUrl } = settings
  const remote =
    url === mdr || host.isOwn(url)
      ? undefined
      : host.remote({ url, tenant, tokenFile, caFile, isConfigured: true })
  const broker = remote ?? host.mdr
  const client = createBrokerClient({ port: broker, signal, monotonic: clock.monotonic, paceMs: 0 })
  const entities = createBrokerEntities(client, clock)
  const table = createSensorTable(database, remote === undefined ? mdr : url)
  const readings = createSourceReadings({ now: clock.now })
  const base = (): string | undefined => callbackUrl ?? addresses()[0]
  const contributions =
    remote === undefined
      ? createOwnContributions({ host, readings, table, base })
      : createRemoteContributions({ host, port: remote, client, entities, readings, table, base })
  const { models } = host
  const predictions = createPredictions({ broker, readings, models, clock, log })
  const creator = createCreator({
    broker,
    entities,
    yieldIfDue: createYield(clock.monotonic, limits.virtualTurnMs.value),
    table,
    contributions,
    predictions,
    models,
    clock,
    log,
    signal,
  })
  void creator.start().catch(fail)
  const status = () => ({ broker: broker.address, virtualSensors: creator.status() })
  return {
    // Callbacks have a secret.
    open: ['/callback/'],
    fetch: createVirtualSensorRoutes({ creator, contributions, models, log }),
    status,
    complaints() {
      const elsewhere = table.elsewhere()
      const former =
        elsewhere === 0 ? [] : [`${elsewhere} virtual sensors are at a broker of earlier settings`]
      return [...former, ...contributions.complaints()]
    },
    async close(): Promise<void> {
      await predictions.close()
      await contributions.close()
      remote?.close()
    },
  }
}
