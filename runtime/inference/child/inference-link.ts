/**
 * The gateway's end of the inference process: starts it at the first request, sends one request at a time,
 * and ends it after a time limit or above a memory ceiling. After an unexpected end the next start waits,
 * longer each time. The death of the process is an error of the request in flight, and of nothing else.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { assert, GatewayError } from '#base/register/errors.ts'
import type { FromInference, InferenceAnswer, ToInference } from './inference-protocol.ts'

export interface InferenceLink {
  /**
   * Sends a request, and starts the process if necessary. Only one request at a time.
   * @throws inference.ended if the process ends, inference.paused if it must not start yet,
   * inference.no-runtime, and what the process reports.
   */
  request<K extends Exclude<InferenceAnswer['kind'], 'failed'>>(
    message: ToInference,
    expected: K,
    timeLimitMs: number,
  ): Promise<Extract<InferenceAnswer, { kind: K }>>
  /** Increases with each start of the process, which has no models then. */
  generation(): number
  status(): InferenceStatus
  /** Ends the process until the next request. */
  stop(): Promise<void>
}

export interface InferenceStatus {
  /** Undefined while no process runs. */
  readonly pid: number | undefined
  /** Resident memory after the last request, or during a long one, bytes; 0 while no process runs. */
  readonly resident: number
  readonly unexpectedEnds: number
  readonly lastEnd: string | undefined
}

/** The heap holds little: models are in native memory. */
const nodeOptions = ['--max-old-space-size=32', '--max-semi-space-size=1', '--v8-pool-size=1']

interface Running {
  readonly process: ChildProcess
  readonly startedAt: number
  resident: number
}

interface InFlight {
  readonly resolve: (answer: InferenceAnswer) => void
  readonly reject: (error: GatewayError) => void
}

/** @param program the entry file of the process. */
export function createInferenceLink(
  { clock, log, metrics }: Instruments,
  program = ownProgram,
): InferenceLink {
  const starts = metrics.counter('selvedge_inference_starts_total')
  let running: Running | undefined
  let generation = 0
  let inFlight: InFlight | undefined
  let unexpectedEnds = 0
  let endsInARow = 0
  let lastEnd: string | undefined
  let nextStartAt = 0
  /** Set once the native library turned out to be missing; it stays so. */
  let missing: GatewayError | undefined
  metrics.gauge('selvedge_inference_resident_bytes', () => running?.resident ?? 0)

  function start(): Running {
    const wait = nextStartAt - clock.monotonic()
    if (wait > 0)
      throw new GatewayError(
        'inference.paused',
        `the inference process ended (${lastEnd}) and starts again in ${Math.ceil(wait / 1000)} s`,
      )
    const child = fork(program, {
      execArgv: nodeOptions,
      // No secrets of the gateway. Free memory goes back to the system.
      env: environment(),
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const one: Running = { process: child, startedAt: clock.monotonic(), resident: 0 }
    child.on('message', (message: FromInference) => answered(one, message))
    child.on('error', (error) => over(one, error.message))
    child.on('exit', (code, signal) => over(one, signal ?? `code ${code}`))
    // If memory is short, the system ends this process rather than the gateway.
    if (process.platform === 'linux' && child.pid !== undefined)
      void writeFile(`/proc/${child.pid}/oom_score_adj`, '1000').catch(() => undefined)
    starts.value++
    generation++
    log.info('inference.started', { pid: child.pid })
    return one
  }

  function answered(one: Running, { resident, ...answer }: FromInference): void {
    if (running !== one) return
    settle((flying) => flying.resolve(answer))
    if (answer.kind === 'failed' && answer.code === 'inference.no-runtime') {
      missing = new GatewayError(answer.code, answer.message)
      log.error('inference.no-runtime', { error: answer.message })
      end(one, 'no runtime')
    } else checkMemory(one, resident)
  }

  function checkMemory(one: Running, resident: number): void {
    if (running !== one) return
    one.resident = resident
    if (resident > limits.inferenceBytesMax.value)
      end(one, `memory: ${resident} bytes, at most ${limits.inferenceBytesMax.value} are allowed`)
  }

  /** Kills the process, and does not wait for its exit. */
  function end(one: Running, reason: string): void {
    one.process.kill('SIGKILL')
    over(one, reason)
  }

  function settle(how: (flying: InFlight) => void): void {
    const flying = inFlight
    inFlight = undefined
    if (flying !== undefined) how(flying)
  }

  function over(one: Running, how: string): void {
    if (running !== one) return
    running = undefined
    if (how === stopped || missing !== undefined) {
      settle((flying) => flying.reject(missing ?? ended('the inference process was stopped')))
      return
    }
    lastEnd = how
    unexpectedEnds++
    const lived = clock.monotonic() - one.startedAt
    endsInARow = lived > limits.inferencePauseMsMax.value ? 1 : endsInARow + 1
    const pauseMs = Math.min(limits.inferencePauseMsMax.value, firstPauseMs * 2 ** (endsInARow - 1))
    nextStartAt = clock.monotonic() + pauseMs
    // Ctrl-C signals all processes of the gateway. One that has just started does not ignore that yet.
    const level = termination.has(how) ? 'info' : 'warn'
    log[level]('inference.ended', { reason: lastEnd, pauseMs })
    settle((flying) => flying.reject(ended(`the inference process ended: ${lastEnd}`)))
  }

  return Object.freeze({
    async request(message, expected, timeLimitMs) {
      if (missing !== undefined) throw missing
      assert(inFlight === undefined, 'one request to the inference process is in flight')
      running ??= start()
      const one = running
      const { promise, resolve, reject } = Promise.withResolvers<InferenceAnswer>()
      inFlight = { resolve, reject }
      const timer = setTimeout(() => end(one, `no answer within ${timeLimitMs} ms`), timeLimitMs)
      // A small model can ask for any amount of memory in one call.
      const watch = setInterval(() => {
        void residentOf(one.process).then((resident) => checkMemory(one, resident))
      }, limits.inferenceWatchMs.value)
      // A failed write is followed by the end of the process, which rejects the request.
      one.process.send(message, () => undefined)
      try {
        const answer = await promise
        if (answer.kind === 'failed') throw new GatewayError(answer.code, answer.message)
        assert(answer.kind === expected, 'the answer of the inference process fits the request')
        return answer as never
      } finally {
        clearTimeout(timer)
        clearInterval(watch)
      }
    },
    generation: () => generation,
    status: () => ({
      pid: running?.process.pid,
      resident: running?.resident ?? 0,
      unexpectedEnds,
      lastEnd,
    }),
    async stop() {
      const one = running
      if (one === undefined) return
      const exited = new Promise((resolve) => one.process.once('exit', resolve))
      end(one, stopped)
      await exited
    },
  } satisfies InferenceLink)
}

/** Resident memory of a process, bytes; 0 where the system does not show it. */
async function residentOf({ pid }: ChildProcess): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return 1024 * Number(/^VmRSS:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0)
  } catch {
    return 0
  }
}

const ownProgram = new URL(
  import.meta.url.endsWith('.ts') ? './inference-process.ts' : './inference-process.js',
  import.meta.url,
)

function environment(): Record<string, string> {
  const cache = process.env['NODE_COMPILE_CACHE']
  const memory = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' }
  return { ...memory, ...(cache !== undefined && { NODE_COMPILE_CACHE: cache }) }
}

const stopped = 'stopped'
/** Signals by which somebody ends a process on purpose. */
const termination: ReadonlySet<string> = new Set(['SIGINT', 'SIGTERM', 'SIGHUP'])
const firstPauseMs = 1000

const ended = (message: string): GatewayError => new GatewayError('inference.ended', message)
