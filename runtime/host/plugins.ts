/**
 * Life cycle of plugins. Each is loaded, given the capabilities its manifest names, and started in parallel
 * with the others while the gateway already serves. Requests to a starting plugin wait. A plugin that cannot
 * start or fails too often is disabled: its routes answer 503, health reports the reason, and the gateway
 * continues.
 */

import { limits } from '#base/limits/limits.ts'
import { withoutTrailingSlashes } from '#base/load/trailing-slashes.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type {
  BrokerPort,
  Capability,
  DirectRequest,
  Plugin,
  Reply,
  RouteEnvironment,
  Running,
} from '#contract'
import { problemOf } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { setAsideDamaged } from '#store/plugins/plugin-file.ts'
import { type CapabilityPorts, type CapabilitySettings, createHost, fileOf } from './capabilities.ts'
import { createComponentBroker } from './own-broker-port.ts'
import { createSharedLog } from './shared-log.ts'

/** A plugin to run; loaded when it starts. */
export interface WantedPlugin {
  readonly name: string
  load(): Promise<Plugin<never, Capability>>
  readonly settings: unknown
}

export type PluginState = 'starting' | 'running' | 'failed' | 'closed'

/** A plugin and its state. */
interface ManagedPlugin {
  readonly wanted: WantedPlugin
  state: PluginState
  /** Whether its start exceeds the time limit. */
  isLate: boolean
  reason: string
  running: Running | undefined
  /** Closes the running plugin; removed by its caller, so that it runs once. */
  close: (() => void | Promise<void>) | undefined
  /** Number of requests in progress. */
  busy: number
  /** Called when no request is in progress any more. */
  onIdle: (() => void) | undefined
  /** Disposes of the given capabilities. */
  readonly given: AsyncDisposableStack
  readonly abort: AbortController
  /** Settles when it runs or cannot run. */
  readonly start: PromiseWithResolvers<void>
  /** Settles when its start function has finished, with or without success. */
  begun: Promise<unknown>
  /** Settles when no step of its end is in progress. */
  ended: Promise<void>
}

export type Plugins = ReturnType<typeof createPlugins>

export function createPlugins(
  ports: CapabilityPorts,
  settings: CapabilitySettings,
  wanted: readonly WantedPlugin[],
) {
  const { log } = ports
  const shared = createSharedLog(ports.following)
  const all = new Map(wanted.map((one) => [one.name, manage(one)]))
  ports.metrics.gauge('selvedge_plugins_failed', () => count('failed'))
  const count = (state: PluginState): number => [...all.values()].filter((one) => one.state === state).length

  async function disable(one: ManagedPlugin, error: unknown): Promise<void> {
    if (one.state === 'failed' || one.state === 'closed') return
    one.state = 'failed'
    one.start.resolve()
    one.reason = toGatewayError(error).message
    log.error('plugin.disabled', { plugin: one.wanted.name, error })
    await end(one)
    try {
      // A damaged file would cause the same failure at each start.
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

  /** Ends a plugin. If its start finishes later, it is ended again to close what that opened. */
  function end(one: ManagedPlugin): Promise<void> {
    one.abort.abort()
    one.ended = one.ended.then(() => endNow(one))
    return one.ended
  }

  async function endNow(one: ManagedPlugin): Promise<void> {
    await restOf(one)
    const { close } = one
    one.close = undefined
    for (const step of [close, () => one.given.disposeAsync()]) {
      try {
        await step?.()
      } catch (error) {
        log.error('plugin.failed', { plugin: one.wanted.name, during: 'its end', error })
      }
    }
  }

  async function startOne(one: ManagedPlugin): Promise<void> {
    const { name } = one.wanted
    const late = setTimeout(() => {
      one.isLate = true
      log.warn('plugin.failed', { plugin: name, during: 'a start that takes long' })
    }, limits.pluginStartMs.value)
    try {
      const plugin = await one.wanted.load()
      // Closed meanwhile: open nothing, since nobody would close it.
      if (one.state !== 'starting') return
      const recipient = {
        settings: one.wanted.settings,
        given: one.given,
        signal: one.abort.signal,
        disable: (error: unknown) => void disable(one, error),
        component,
      }
      const host = createHost(plugin, recipient, { ...ports, shared }, settings)
      const starting = (async () => plugin.start(host as never))()
      one.begun = starting.catch(() => undefined)
      const running = await starting
      one.running = running
      one.close = () => running.close?.()
      // Closed meanwhile, or disabled because a follower failed too often.
      if (one.state !== 'starting') return await end(one)
      one.state = 'running'
      log.info('plugin.started', { plugin: name, version: plugin.version })
    } catch (error) {
      await disable(one, error)
    } finally {
      clearTimeout(late)
      one.start.resolve()
    }
  }

  async function startAll(): Promise<void> {
    const starts: Promise<void>[] = []
    for (const one of all.values()) {
      // Each start has its own turn.
      await nextTurn()
      if (one.state === 'starting') starts.push(startOne(one))
    }
    await Promise.all(starts)
  }

  /** Disposes of the capabilities when the start no longer needs them. */
  async function close(one: ManagedPlugin): Promise<void> {
    one.abort.abort()
    await atMost(limits.pluginDrainMs.value, one.begun)
    await end(one)
  }

  /** Another plugin as a broker. */
  const component = (name: string): BrokerPort =>
    createComponentBroker(() => ports.addresses(name)[0] ?? name, {
      refusalOf,
      async serve(request, arrival) {
        const { body, signal } = arrival
        const environment = { body: async () => body, signal, arrival }
        // If the plugin does not run, this throws at once and is reported as an unreachable broker.
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

  async function answerLater(
    one: ManagedPlugin,
    request: Request,
    environment: RouteEnvironment,
  ): Promise<Response> {
    await startOf(one)
    return answerNow(one.wanted.name, one, request, environment)
  }

  function answerNow(
    name: string,
    one: ManagedPlugin | undefined,
    request: Request,
    environment: RouteEnvironment,
  ): Response | Promise<Response> {
    const { description, fetch } = (one?.state === 'running' ? one.running : undefined) ?? {}
    if (description !== undefined && /^[^?]*:\/\/[^/]*\/openapi\.json(?:\?|$)/.test(request.url))
      return descriptionFor(request, description)
    if (fetch !== undefined) return counted(one!, () => one!.running!.fetch!(request, environment))
    if (one === undefined || one.state === 'running')
      throw new GatewayError('http.no-route', `there is no plugin ${name}`)
    const why = one.state === 'failed' ? `failed: ${one.reason}` : `is ${one.state}`
    throw new GatewayError('plugin.unavailable', `${name} ${why}`, { retryAfterSeconds: 1 })
  }

  return Object.freeze({
    /**
     * Starts all plugins in parallel. The first one starts after the current turn of the event loop; each
     * takes 10 to 20 ms of work. Settles when every plugin runs or is disabled.
     */
    start: startAll,
    has: (name: string) => all.has(name),
    /**
     * A plugin's response to a request. Waits up to `limits.pluginWaitMs` for a starting plugin. @throws
     * plugin.unavailable while it does not run.
     */
    fetch: answer,
    /** A running plugin's response that needs no Request; undefined if `fetch` has to respond. */
    direct(name: string, request: DirectRequest): Reply | undefined {
      const one = all.get(name)
      return one?.state === 'running' ? one.running?.direct?.(request) : undefined
    },
    /** Passes a notification to a plugin. @throws plugin.unavailable, or the error of the plugin. */
    async notify(name: string, uri: string, body: Buffer): Promise<void> {
      const one = all.get(name)
      if (one?.state === 'starting') await startOf(one)
      const notified = one?.state === 'running' ? one.running?.notified : undefined
      if (notified === undefined)
        throw new GatewayError('plugin.unavailable', `${name} takes no notifications now`, {
          retryAfterSeconds: 1,
        })
      await counted(one!, () => notified(uri, body))
    },
    /** Whether a path of a plugin needs no token. Only a started plugin can say so; it waits like `fetch`. */
    isOpen(name: string, path: string, method: string): boolean | Promise<boolean> {
      const one = all.get(name)
      if (one?.state !== 'starting') return isOpenAt(one?.running, path, method)
      return startOf(one).then(() => isOpenAt(one.running, path, method))
    },
    /** Whether pages of every origin may read its responses. It waits like `fetch`. */
    isShared(name: string): boolean | Promise<boolean> {
      const one = all.get(name)
      if (one?.state !== 'starting') return one?.running?.isShared === true
      return startOf(one).then(() => one.running?.isShared === true)
    },
    status: (): object =>
      Object.fromEntries(
        [...all].map(([name, { state, reason, running }]) => [
          name,
          { state, ...(reason === '' ? {} : { reason }), ...(state === 'running' && running?.status?.()) },
        ]),
      ),
    complaints: (): readonly string[] =>
      [...all].flatMap(([name, { state, isLate, reason, running }]) => {
        if (state === 'starting' && isLate) return [`${name} has not started yet`]
        return state === 'failed' ? [`${name} failed: ${reason}`] : (running?.complaints?.() ?? [])
      }),
    async close(): Promise<void> {
      // No plugin accepts new requests while another one still ends.
      for (const one of all.values()) {
        if (one.state !== 'failed') one.state = 'closed'
        one.start.resolve()
      }
      await Promise.all([...all.values()].map(close))
    },
  })
}

/** Settles when a plugin has started or cannot start, or after the maximum wait. */
const startOf = ({ start }: ManagedPlugin): Promise<void> => atMost(limits.pluginWaitMs.value, start.promise)

async function atMost(ms: number, wanted: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([wanted, late.promise])
  clearTimeout(timer)
}

function isOpenAt(running: Running | undefined, path: string, method: string): boolean {
  const { open, isShared, description } = running ?? {}
  // Routers ignore slashes at the end: a path that ends with one is not below itself.
  const bare = withoutTrailingSlashes(path) || '/'
  if (isShared === true && method === 'OPTIONS') return true
  if (description !== undefined && path === '/openapi.json') return true
  return (
    open?.some((one) => bare === one || (one !== '/' && bare.startsWith(one.replace(/\/?$/, '/')))) === true
  )
}

function descriptionFor({ method }: Request, description: object): Response {
  if (method !== 'GET' && method !== 'HEAD')
    throw new GatewayError('http.method-not-allowed', `${method} /openapi.json`, { allow: 'GET, HEAD' })
  return Response.json(description)
}

/** Turns a plugin's refusal into a response for callers in process. */
function refusalOf(error: unknown): Response {
  if (!(error instanceof GatewayError)) throw error
  const problem = problemOf(error)
  return Response.json(problem, { status: problem.status })
}

/** Counts a request while it is in progress. */
async function counted<T>(one: ManagedPlugin, work: () => T | Promise<T>): Promise<T> {
  one.busy++
  try {
    return await work()
  } finally {
    one.busy--
    if (one.busy === 0) one.onIdle?.()
  }
}

/** Settles when no request is in progress, or after the maximum drain time. */
function restOf(one: ManagedPlugin): Promise<void> {
  if (one.busy === 0) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limits.pluginDrainMs.value)
    one.onIdle = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}

const manage = (wanted: WantedPlugin): ManagedPlugin => ({
  wanted,
  state: 'starting',
  isLate: false,
  reason: '',
  running: undefined,
  close: undefined,
  busy: 0,
  onIdle: undefined,
  given: new AsyncDisposableStack(),
  abort: new AbortController(),
  start: Promise.withResolvers(),
  begun: Promise.resolve(),
  ended: Promise.resolve(),
})
