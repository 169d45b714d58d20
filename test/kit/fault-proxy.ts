/**
 * A bad way to a server: stands between a client and one address and fails as it is told. TCP faults concern bytes and
 * know nothing of HTTP; who stands for the server answers itself, and the server sees nothing but what a 207 took. The port stays
 * the same through all of it, so that a client finds the way again.
 */
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { answerFor, isStanding, type Standing } from './fault-answers.ts'
import { freePort } from './ports.ts'

/**
 * - none: everything passes
 * - refused: nothing listens, and what was open is reset
 * - blackhole: nothing passes in either direction and nobody is told; connecting succeeds
 * - half-open: what is sent arrives, no answer comes back, and the connections are dead from then on
 * - slow: a few bytes a second, late
 * - flapping: refused and none in turn, several times a second
 * - what stands for the server, see fault-answers.ts
 */
export type Fault = 'none' | 'refused' | 'blackhole' | 'half-open' | 'slow' | 'flapping' | Standing

export const faults: readonly Fault[] = [
  'refused',
  'blackhole',
  'half-open',
  'slow',
  'flapping',
  429,
  500,
  503,
  207,
]

export interface FaultProxySettings {
  readonly target: { readonly host: string; readonly port: number }
  readonly slowBytesPerSecond?: number
  readonly flapMs?: number
}

export interface FaultProxy {
  readonly port: number
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string
  fault(): Fault
  /** Begins a fault, or ends it with `none`. What a black hole swallowed passes late, as on a real way. */
  set(fault: Fault): Promise<void>
  /** Connections taken, and requests answered for the server, so far. */
  counts(): { readonly connections: number; readonly answered: number }
  close(): Promise<void>
}

interface Pair {
  readonly near: Socket
  readonly far: Socket
}

export async function createFaultProxy(settings: FaultProxySettings): Promise<FaultProxy> {
  const { target, slowBytesPerSecond = 50_000, flapMs = 150 } = settings
  let fault: Fault = 'none'
  const port = await freePort()
  let listening: Server | undefined
  let flapping: NodeJS.Timeout | undefined
  let changing = Promise.resolve()
  const pairs = new Set<Pair>()
  const counts = { connections: 0, answered: 0 }

  const stand = createHttpServer((incoming, response) => {
    counts.answered++
    void answerFor(incoming, response, { as: isStanding(fault) ? fault : 503, target })
  })
  await new Promise<void>((resolve) => stand.listen(0, '127.0.0.1', resolve))
  const standPort = (stand.address() as AddressInfo).port

  function take(near: Socket): void {
    counts.connections++
    const far = isStanding(fault) ? connect(standPort, '127.0.0.1') : connect(target.port, target.host)
    const pair = { near, far }
    pairs.add(pair)
    for (const socket of [near, far]) socket.on('error', () => undefined).setNoDelay(true)
    void Promise.all([carry(near, far, 'request'), carry(far, near, 'answer')]).then(() => {
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    })
  }

  /** Carries bytes one way until there are no more. */
  async function carry(from: Socket, to: Socket, what: 'request' | 'answer'): Promise<void> {
    const isLost = (): boolean => fault === 'half-open' && what === 'answer'
    try {
      for await (const bytes of from.iterator({ destroyOnReturn: false })) {
        if (fault === 'slow') await passed(50 + ((bytes as Buffer).length / slowBytesPerSecond) * 1000)
        while (fault === 'blackhole') await passed(20)
        if (!isLost() && !to.write(bytes as Buffer)) await drained(to)
      }
      while (fault === 'blackhole' || isLost()) await passed(20)
      to.end()
    } catch {
      while (fault === 'blackhole' || isLost()) await passed(20)
      to.destroy()
    }
  }

  function cutAll(): void {
    for (const { near, far } of [...pairs]) {
      near.resetAndDestroy()
      far.resetAndDestroy()
    }
  }

  async function listen(): Promise<void> {
    if (listening !== undefined) return
    const server = createServer({ allowHalfOpen: true }, take)
    listening = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
  }

  async function refuse(): Promise<void> {
    const server = listening
    listening = undefined
    const closed = new Promise<void>((resolve) =>
      server === undefined ? resolve() : server.close(() => resolve()),
    )
    cutAll()
    await closed
  }

  async function change(next: Fault): Promise<void> {
    const before = fault
    fault = next
    clearInterval(flapping)
    if (next === 'refused') return refuse()
    await listen()
    if (isStanding(before) || isStanding(next) || before === 'half-open') cutAll()
    if (next !== 'flapping') return
    flapping = setInterval(() => {
      changing = changing.then(() => {
        if (fault !== 'flapping') return
        return listening === undefined ? listen() : refuse()
      })
    }, flapMs)
    flapping.unref()
  }

  await listen()
  return Object.freeze({
    port,
    url: `http://127.0.0.1:${port}`,
    fault: () => fault,
    set(next) {
      changing = changing.then(() => change(next))
      return changing
    },
    counts: () => ({ ...counts }),
    async close() {
      clearInterval(flapping)
      await changing
      fault = 'refused'
      await refuse()
      stand.closeAllConnections()
      await new Promise((resolve) => stand.close(resolve))
    },
  } satisfies FaultProxy)
}

const passed = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const drained = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      socket.off('drain', end).off('close', end)
      resolve()
    }
    socket.on('drain', end).on('close', end)
  })
