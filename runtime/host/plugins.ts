/**
 * The life of plugins: each is loaded, given what its manifest names, and started beside the others, while the gateway serves
 * already; who asks one that starts waits for it. One that cannot be started, or fails too often, is quarantined: its routes
 * answer 503, health says why, and the gateway lives.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { BrokerPort, Capability, Plugin, RouteEnvironment, Running } from '#contract'
import { problemOf } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { setAsideDamaged } from '#store/plugins/plugin-file.ts'
import { type CapabilityPorts, type CapabilitySettings, fileOf, hostFor } from './capabilities.ts'
import { createComponentBroker } from './own-broker-port.ts'

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
  /** Closes what runs, once: whoever does takes it away. */
  close: (() => void | Promise<void>) | undefined
  /** Requests that it works on. */
  busy: number
  /** Called when it works on none any more. */
  rests: (() => void) | undefined
  /** Ends what it was given. */
  readonly given: AsyncDisposableStack
  readonly abort: AbortController
  /** Settles when it runs or will not. */
  readonly start: PromiseWithResolvers<void>
  /** Settles when its own start is through, however that went. */
  begun: Promise<unknown>
  /** Settles when nothing of its end is under way. */
  ended: Promise<void>
}

export function createPlugins(
  ports: CapabilityPorts,
  settings: CapabilitySettings,
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

  /** One that started after all is ended again, for what that gave. */
  function end(one: Kept): Promise<void> {
    one.abort.abort()
    one.ended = one.ended.then(() => endNow(one))
    return one.ended
  }

  async function endNow(one: Kept): Promise<void> {
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
      const recipient = {
        settings: one.wanted.settings,
        given: one.given,
        signal: one.abort.signal,
        quarantine: (error: unknown) => void quarantine(one, error),
        component,
      }
      const host = hostFor(plugin, recipient, ports, settings)
      const starting = (async () => plugin.start(host as never))()
      one.begun = starting.catch(() => undefined)
      const running = await starting
      one.running = running
      one.close = () => running.close?.()
      // Closed meanwhile, or what follows the log for it failed too often.
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

  /** What it was given is taken away when its start needs it no more. */
  async function close(one: Kept): Promise<void> {
    one.abort.abort()
    await atMost(limits.pluginDrainMs.value, one.begun)
    await end(one)
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
          { state, ...(reason === '' ? {} : { reason }), ...(state === 'running' && running?.status?.()) },
        ]),
      ),
    complaints: () =>
      [...all].flatMap(([name, { state, isLate, reason, running }]) => {
        if (state === 'starting' && isLate) return [`${name} has not started yet`]
        return state === 'quarantined' ? [`${name} failed: ${reason}`] : (running?.complaints?.() ?? [])
      }),
    async close() {
      // None takes anything new while another one still ends.
      for (const one of all.values()) {
        if (one.state !== 'quarantined') one.state = 'closed'
        one.start.resolve()
      }
      await Promise.all([...all.values()].map(close))
    },
  } satisfies Plugins)
}

/** Settles when a plugin has started or will not, or when it takes too long to be waited for. */
const startOf = ({ start }: Kept): Promise<void> => atMost(limits.pluginWaitMs.value, start.promise)

async function atMost(ms: number, wanted: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([wanted, late.promise])
  clearTimeout(timer)
}

function isOpenAt(running: Running | undefined, path: string, method: string): boolean {
  const { open, isShared, description } = running ?? {}
  if (isShared === true && method === 'OPTIONS') return true
  if (description !== undefined && path === '/openapi.json') return true
  return open?.some((one) => path === one || (one !== '/' && path.startsWith(`${one}/`))) === true
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
  close: undefined,
  busy: 0,
  rests: undefined,
  given: new AsyncDisposableStack(),
  abort: new AbortController(),
  start: Promise.withResolvers(),
  begun: Promise.resolve(),
  ended: Promise.resolve(),
})
