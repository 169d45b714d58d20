/**
 * Builds the host of a plugin: the base, and the capabilities that its manifest names. Everything that a
 * plugin opens or follows ends with it.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import type {
  BrokerPort,
  Capabilities,
  Capability,
  ForwardPort,
  Host,
  HostBase,
  ModelsPort,
  Plugin,
  PublishOwn,
} from '#contract'
import type { HttpEndpointSettings } from '#delivery/http-endpoint.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { openPluginFile, type PluginFile } from '#store/plugins/plugin-file.ts'
import type { CopyBackFile } from '#store/plugins/plugin-log.ts'
import { type ChangesPorts, createChanges } from './changes.ts'
import { createExchanges } from './exchanges.ts'
import { createMessageSources, type MessageSourcesSettings } from './message-sources.ts'
import { createOwnBrokerPort, type Serve } from './own-broker-port.ts'
import { openRedisStore } from './redis-store.ts'
import { openRemoteBroker } from './remote-broker-port.ts'
import { createOwnForward, type OwnRoutes, openRemoteForward } from './request-forwarding.ts'
import { createTimetable } from './timetable.ts'

export interface CapabilityPorts extends Omit<ChangesPorts, 'shared'> {
  /** Serves requests to this gateway from within. */
  readonly serve: Serve
  /** Serves a request as it arrived. */
  readonly pass: OwnRoutes
  /** Until when responses about entities of a tenant stay as they are. */
  readonly validity: NonNullable<ForwardPort['validity']>
  /** Publishes to clients of the embedded MQTT broker; undefined if it is off. */
  readonly publish: () => PublishOwn | undefined
  /** Address of this gateway for people. */
  readonly address: () => string
  /** Addresses of a plugin. */
  readonly addresses: (name: string) => readonly string[]
  readonly isOwn: (url: string) => boolean
  readonly models: ModelsPort
  /** Checkpoints the logs of plugin files. */
  readonly copyBack: CopyBackFile
  readonly context: () => Context
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface CapabilitySettings extends HttpEndpointSettings, Pick<MessageSourcesSettings, 'bridges'> {
  /** Name of this gateway at other brokers. */
  readonly gatewayName: () => string
  /** Folder of the plugin files. */
  readonly folder: string
}

/** The plugin that receives the host. */
export interface Recipient {
  /** Its section of the settings. */
  readonly settings: unknown
  /** Disposes of the given capabilities. */
  readonly given: AsyncDisposableStack
  readonly signal: AbortSignal
  /** Quarantines the plugin. */
  disable(error: unknown): void
  component(name: string): BrokerPort
}

export function createHost(
  plugin: Plugin<never, Capability>,
  { given, signal, disable, component, settings: own }: Recipient,
  ports: CapabilityPorts & Pick<ChangesPorts, 'shared'>,
  settings: CapabilitySettings,
): HostBase<unknown> & Partial<Capabilities> {
  const { name } = plugin
  const { clock, log, metrics, isOwn } = ports
  const make: { readonly [name in Capability]: () => Capabilities[name] } = {
    mdr: () => createOwnBrokerPort(ports.address, ports.serve),
    component: () => component,
    remote: () => (broker) => openRemoteBroker(broker, settings, clock),
    forwarding: () => ({
      own: createOwnForward(ports),
      remote: (target) =>
        given.adopt(
          openRemoteForward(target, { ca: settings.ca, alias: `${settings.gatewayName()}-${name}` }),
          (one) => one.close(),
        ),
    }),
    keyValues: () => ({
      open: (server, ready) => given.adopt(openRedisStore(server, ready, log), (one) => one.close()),
    }),
    changes: () => followed(createChanges(ports, { name, disable }), given),
    database: () => given.adopt(openFile(plugin, settings, ports), (file) => file.close()),
    publish: ports.publish,
    exchanges: () => createExchanges(given),
    models: () => withEnd(ports.models, given),
    sources: () =>
      given.adopt(
        createMessageSources(
          { clock },
          { ...settings, clientName: () => `${settings.gatewayName()}-${name}` },
        ),
        (one) => one.close(),
      ),
    schedule() {
      const timetable = given.adopt(createTimetable(name, ports), (one) => one.close())
      return timetable.add
    },
  }
  const base: HostBase<unknown> = {
    settings: own,
    clock,
    log,
    metrics,
    isOwn,
    signal,
    fail: disable,
    context: ports.context,
    addresses: () => ports.addresses(name),
  }
  const named = plugin.needs.map((need) => [need, make[need]()] as const)
  return Object.freeze({ ...base, ...Object.fromEntries(named) }) satisfies Host<unknown, never>
}

/** Closes all followers when the plugin ends. */
function followed(changes: Capabilities['changes'], given: AsyncDisposableStack): Capabilities['changes'] {
  const open = new Set<{ close(): void }>()
  given.defer(() => {
    for (const one of open) one.close()
  })
  return {
    ...changes,
    follow(from, follower) {
      const one = changes.follow(from, follower)
      open.add(one)
      return {
        close() {
          open.delete(one)
          one.close()
        },
      }
    },
  }
}

/** Models, without notices of changes after the end of the plugin. */
function withEnd(models: ModelsPort, given: AsyncDisposableStack): ModelsPort {
  const { assigned, described, run, storeLinear, storeFile, remove } = models
  return Object.freeze({
    assigned,
    described,
    run,
    storeLinear,
    storeFile,
    remove,
    onChange: (listener) => given.adopt(models.onChange(listener), (one) => one.close()),
  } satisfies ModelsPort)
}

/** The file of a plugin. */
export const fileOf = ({ folder }: CapabilitySettings, name: string): string => join(folder, `${name}.db`)

function openFile(
  { name, tables = [] }: Plugin<never, Capability>,
  settings: CapabilitySettings,
  { log, copyBack }: CapabilityPorts,
): PluginFile {
  mkdirSync(settings.folder, { recursive: true, mode: 0o700 })
  const file = openPluginFile(fileOf(settings, name), tables, copyBack)
  if (file.isRenewed) log.error('plugin.file-renewed', { plugin: name })
  return file
}
