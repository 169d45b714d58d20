/**
 * The life of plugins: each is loaded, given what its manifest names, and started beside the others, while the gateway serves
 * already; who asks one that starts waits for it. One that cannot be started, or fails too often, is quarantined: its routes
 * answer 503, health says why, and the gateway lives.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '#base/clock.ts'
import { GatewayError, toGatewayError } from '#base/errors.ts'
import { limits } from '#base/limits.ts'
import type { Log } from '#base/log.ts'
import type { Metrics } from '#base/metrics.ts'
import type {
  BrokerPort,
  Capabilities,
  Capability,
  Host,
  HostBase,
  Plugin,
  RouteEnvironment,
  Running,
} from '#contract'
import type { Context } from '#ngsi-ld/context.ts'
import { problemOf } from '#ngsi-ld/problem.ts'
import { openPluginFile, type PluginFile, setAsideDamaged } from '#store/plugin-file.ts'
import type { CopyBackFile } from '#store/plugin-log.ts'
import { type ChangesPorts, createChanges } from './changes.ts'
import { createComponentBroker, createOwnBroker, type Serve } from './own-broker.ts'
import { openRemoteBroker, type RemoteSettings } from './remote-broker.ts'
import { createTimetable } from './timetable.ts'

export interface PluginsPorts extends ChangesPorts {
  /** Requests to this gateway from within. */
  readonly serve: Serve
  /** Where people reach it. */
  readonly address: () => string
  /** Addresses of a plugin. */
  readonly addresses: (name: string) => readonly string[]
  readonly isOwn: (url: string) => boolean
  /** By which the logs of their files end. */
  readonly copyBack: CopyBackFile
  readonly context: () => Context
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

export interface PluginsSettings extends RemoteSettings {
  /** Folder of their files. */
  readonly folder: string
}

/** One to be run: loaded when it starts. */
export interface Wanted {
  readonly name: string
  load(): Promise<Plugin<never, Capability>>
  readonly settings: unknown
}

export type PluginState = 'starting' | 'running' | 'quarantined' | 'closed'

export interface Plugins {
  /**
   * Starts all, beside whatever else happens, the first one when what is under way in this turn of the event loop is done:
   * 10 to 20 ms of work each. Settles when each runs or is quarantined.
   */
  start(): Promise<void>
  has(name: string): boolean
  /**
   * The answer of a plugin to a request of a path of its own, once it has started, for which it waits as long as
   * `limits.pluginWaitMs`. @throws plugin.unavailable while it does not run.
   */
  fetch(name: string, request: Request, environment: RouteEnvironment): Response | Promise<Response>
  /** Whether a path of a plugin needs no token, which only a plugin that has started says; so this waits for it, like `fetch`. */
  isOpen(name: string, path: string, method: string): boolean | Promise<boolean>
  /** Whether pages of any origin may read what it answers. */
  isShared(name: string): boolean
  status(): object
  complaints(): readonly string[]
  close(): Promise<void>
}

/** A plugin as it stands. */
interface Kept {
  readonly wanted: Wanted
  state: PluginState
  /** Whether its start takes longer than it may. */
  isLate: boolean
  reason: string
  running: Running | undefined
  /** Requests that it works on. */
  busy: number
  /** Called when it works on none any more. */
  rests: (() => void) | undefined
  /** Ends what it was given. */
  readonly given: AsyncDisposableStack
  readonly abort: AbortController
  /** Settles when it runs or will not. */
  readonly start: PromiseWithResolvers<void>
}

export function createPlugins(
  ports: PluginsPorts,
  settings: PluginsSettings,
  wanted: readonly Wanted[],
): Plugins {
  const { log } = ports
  const all = new Map(wanted.map((one) => [one.name, keep(one)]))
  ports.metrics.gauge('selvedge_plugins_quarantined', () => count('quarantined'))
  const count = (state: PluginState): number => [...all.values()].filter((one) => one.state === state).length

  async function quarantine(one: Kept, error: unknown): Promise<void> {
    if (one.state === 'quarantined' || one.state === 'closed') return
    one.state = 'quarantined'
    one.start.resolve()
    one.reason = toGatewayError(error).message
    log.error('plugin.quarantined', { plugin: one.wanted.name, error })
    await end(one)
    try {
      // Else it would fail the same way after each start.
      if (setAsideDamaged(fileOf(settings, one.wanted.name), error))
        log.error('plugin.file-renewed', { plugin: one.wanted.name })
    } catch (failure) {
      log.error('plugin.failed', {
        plugin: one.wanted.name,
        during: 'setting its file aside',
        error: failure,
      })
    }
  }

  async function end(one: Kept): Promise<void> {
    one.abort.abort()
    await restOf(one)
    try {
      await one.running?.close?.()
    } catch (error) {
      log.error('plugin.failed', { plugin: one.wanted.name, during: 'its end', error })
    }
    await one.given.disposeAsync()
  }

  async function startOne(one: Kept): Promise<void> {
    const { name } = one.wanted
    const late = setTimeout(() => {
      one.isLate = true
      log.warn('plugin.failed', { plugin: name, during: 'a start that takes long' })
    }, limits.pluginStartMs.value)
    try {
      const plugin = await one.wanted.load()
      // Closed meanwhile: nothing is opened that nobody would close.
      if (one.state !== 'starting') return
      const host = hostOf(plugin, one, ports, settings, {
        quarantine: (error) => void quarantine(one, error),
        component: (other) => component(other),
      })
      const running = await plugin.start(host as never)
      one.running = running
      // What follows the log for it may have failed too often by now.
      if (one.state !== 'starting') return await end(one)
      one.state = 'running'
      log.info('plugin.started', { plugin: name, version: plugin.version })
    } catch (error) {
      await quarantine(one, error)
    } finally {
      clearTimeout(late)
      one.start.resolve()
    }
  }

  async function startAll(): Promise<void> {
    const starts: Promise<void>[] = []
    for (const one of all.values()) {
      // Each has a turn of its own.
      await new Promise((resolve) => setImmediate(resolve))
      if (one.state === 'starting') starts.push(startOne(one))
    }
    await Promise.all(starts)
  }

  /** Another plugin as a broker. */
  const component = (name: string): BrokerPort =>
    createComponentBroker(() => ports.addresses(name)[0] ?? name, {
      refusalOf,
      async serve(request, { body, signal }) {
        const environment = { body: async () => body, signal }
        // One that does not run throws at once, and is told as a broker that cannot be reached.
        const running = answer(name, request, environment)
        try {
          return await running
        } catch (error) {
          return refusalOf(error)
        }
      },
      async list(request) {
        const one = all.get(name)
        const list = one?.state === 'running' ? one.running?.list : undefined
        return list === undefined ? undefined : counted(one!, () => list(request))
      },
    })

  function answer(
    name: string,
    request: Request,
    environment: RouteEnvironment,
  ): Response | Promise<Response> {
    const one = all.get(name)
    if (one?.state === 'starting') return answerLater(one, request, environment)
    return answerNow(name, one, request, environment)
  }

  async function answerLater(one: Kept, request: Request, environment: RouteEnvironment): Promise<Response> {
    await startOf(one)
    return answerNow(one.wanted.name, one, request, environment)
  }

  function answerNow(
    name: string,
    one: Kept | undefined,
    request: Request,
    environment: RouteEnvironment,
  ): Response | Promise<Response> {
    const { description, fetch } = (one?.state === 'running' ? one.running : undefined) ?? {}
    if (description !== undefined && /^[^?]*:\/\/[^/]*\/openapi\.json(?:\?|$)/.test(request.url))
      return descriptionFor(request, description)
    if (fetch !== undefined) return counted(one!, () => one!.running!.fetch!(request, environment))
    if (one === undefined || one.state === 'running')
      throw new GatewayError('http.no-route', `there is no ${name}`)
    const why = one.state === 'quarantined' ? `failed: ${one.reason}` : `is ${one.state}`
    throw new GatewayError('plugin.unavailable', `${name} ${why}`, { retryAfterSeconds: 1 })
  }

  return Object.freeze({
    start: startAll,
    has: (name) => all.has(name),
    fetch: answer,
    isOpen(name, path, method) {
      const one = all.get(name)
      if (one?.state !== 'starting') return isOpenAt(one?.running, path, method)
      return startOf(one).then(() => isOpenAt(one.running, path, method))
    },
    isShared: (name) => all.get(name)?.running?.isShared === true,
    status: () =>
      Object.fromEntries(
        [...all].map(([name, { state, reason, running }]) => [
          name,
          { state, ...(reason === '' ? {} : { reason }), ...running?.status?.() },
        ]),
      ),
    complaints: () =>
      [...all].flatMap(([name, { state, isLate, reason, running }]) => {
        if (state === 'starting' && isLate) return [`${name} has not started yet`]
        return state === 'quarantined' ? [`${name} failed: ${reason}`] : (running?.complaints?.() ?? [])
      }),
    async close() {
      const live = [...all.values()].filter(({ state }) => state === 'running' || state === 'starting')
      // None takes anything new while another one still ends.
      for (const one of live) {
        one.state = 'closed'
        one.start.resolve()
      }
      await Promise.all(live.map(end))
    },
  } satisfies Plugins)
}

/** Settles when a plugin has started or will not, or when it takes too long to be waited for. */
async function startOf({ start }: Kept): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, limits.pluginWaitMs.value)
  await Promise.race([start.promise, late.promise])
  clearTimeout(timer)
}

function isOpenAt(running: Running | undefined, path: string, method: string): boolean {
  const { open, isShared, description } = running ?? {}
  if (isShared === true && method === 'OPTIONS') return true
  if (description !== undefined && path === '/openapi.json') return true
  return open?.some((one) => path === one || path.startsWith(`${one}/`)) === true
}

function descriptionFor({ method }: Request, description: object): Response {
  if (method !== 'GET' && method !== 'HEAD')
    throw new GatewayError('http.method-not-allowed', `${method} /openapi.json`, { allow: 'GET, HEAD' })
  return Response.json(description)
}

/** What a plugin refuses is an answer to who asked it in process, too. */
function refusalOf(error: unknown): Response {
  if (!(error instanceof GatewayError)) throw error
  const problem = problemOf(error)
  return Response.json(problem, { status: problem.status })
}

/** Counts a request while it is worked on. */
async function counted<T>(one: Kept, work: () => T | Promise<T>): Promise<T> {
  one.busy++
  try {
    return await work()
  } finally {
    one.busy--
    if (one.busy === 0) one.rests?.()
  }
}

/** Settles when a plugin works on no request any more, or has had time enough. */
function restOf(one: Kept): Promise<void> {
  if (one.busy === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limits.pluginDrainMs.value)
    one.rests = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}

const keep = (wanted: Wanted): Kept => ({
  wanted,
  state: 'starting',
  isLate: false,
  reason: '',
  running: undefined,
  busy: 0,
  rests: undefined,
  given: new AsyncDisposableStack(),
  abort: new AbortController(),
  start: Promise.withResolvers(),
})

interface Whole {
  quarantine(error: unknown): void
  component(name: string): BrokerPort
}

/** What a plugin gets: the base and the capabilities it names, each made when it is named. */
function hostOf(
  plugin: Plugin<never, Capability>,
  { wanted, given, abort }: Kept,
  ports: PluginsPorts,
  settings: PluginsSettings,
  whole: Whole,
): HostBase<unknown> & Partial<Capabilities> {
  const { name } = wanted
  const { clock, log, metrics, isOwn } = ports
  const make: { readonly [name in Capability]: () => Capabilities[name] } = {
    mdr: () => createOwnBroker(ports.address, ports.serve),
    component: () => whole.component,
    remote: () => (broker) => openRemoteBroker(broker, settings, clock),
    changes: () => followed(createChanges(ports, { name, quarantine: whole.quarantine }), given),
    database: () => given.adopt(openFile(plugin, settings, ports), (file) => file.close()),
    schedule() {
      const timetable = given.adopt(createTimetable(name, ports), (one) => one.close())
      return timetable.add
    },
  }
  const base: HostBase<unknown> = {
    settings: wanted.settings,
    ...{ clock, log, metrics, isOwn },
    context: ports.context,
    signal: abort.signal,
    addresses: () => ports.addresses(name),
  }
  const named = plugin.needs.map((need) => [need, make[need]()] as const)
  return Object.freeze({ ...base, ...Object.fromEntries(named) }) satisfies Host<unknown, never>
}

/** Whatever still follows ends with the plugin. */
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

const fileOf = ({ folder }: PluginsSettings, name: string): string => join(folder, `${name}.db`)

function openFile(
  { name, tables = [] }: Plugin<never, Capability>,
  settings: PluginsSettings,
  { log, copyBack }: PluginsPorts,
): PluginFile {
  mkdirSync(settings.folder, { recursive: true, mode: 0o700 })
  const file = openPluginFile(fileOf(settings, name), tables, copyBack)
  if (file.isRenewed) log.error('plugin.file-renewed', { plugin: name })
  return file
}
