/**
 * The newest trainings: one runs at a time, in a thread of its own. Requests and results are on disk. A
 * training that a restart interrupted runs again from its request, which makes the same model.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { Log } from '#base/register/log.ts'
import type { BrokerPort, Json } from '#contract'
import { readStreamValues } from './stream-values.ts'
import { trainInThread } from './trainer.ts'
import { parseTrainingRequest, type TrainingRequest } from './training-request.ts'
import type { TrainingResult, TrainingStatements } from './training-statements.ts'

export interface TrainingsPorts {
  readonly broker: BrokerPort
  readonly table: TrainingStatements
  readonly log: Log
  readonly now: () => number
  /** Aborted when the plugin stops. */
  readonly signal: AbortSignal
}

interface Training {
  readonly id: string
  readonly startedAt: number
  readonly cancel: AbortController
  /** Share of the work of its state, 0 to 1. */
  progress: number
  result: Omit<TrainingResult, 'state'> & { readonly state: 'reading' | 'training' | TrainingResult['state'] }
}

export type Trainings = ReturnType<typeof createTrainings>

export function createTrainings({ broker, table, log, now, signal }: TrainingsPorts) {
  const trainings = new Map<string, Training>()

  const isRunning = ({ result: { state } }: Training): boolean => state === 'reading' || state === 'training'

  function add(id: string, startedAt: number): Training {
    const cancel = new AbortController()
    const training: Training = { id, startedAt, cancel, progress: 0, result: { state: 'reading', values: 0 } }
    trainings.set(id, training)
    return training
  }

  async function run(training: Training, request: TrainingRequest): Promise<void> {
    const stop = AbortSignal.any([signal, training.cancel.signal])
    let values = 0
    try {
      const read = await readStreamValues(broker, request, {
        signal: stop,
        onProgress(share, count) {
          values = count
          training.progress = share
          training.result = { state: 'reading', values }
        },
      })
      training.result = { state: 'training', values }
      training.progress = 0
      const { document, windows } = await trainInThread(
        { request, values: read },
        {
          signal: stop,
          onProgress(share) {
            training.progress = share
          },
        },
      )
      const full = { observableProperties: request.observableProperties, ...document }
      end(training, { state: 'trained', values, windows, document: full })
    } catch (error) {
      // The next process runs it again.
      if (signal.aborted) return
      end(training, { state: 'failed', values, message: toGatewayError(error).message })
    }
  }

  function end(training: Training, result: TrainingResult): void {
    training.result = result
    // A cancelled one was forgotten.
    if (trainings.get(training.id) !== training) return
    try {
      table.end(training.id, result)
    } catch (error) {
      // A restart runs it again.
      log.error('plugin.failed', { plugin: 'patterns', during: 'saving a training', error })
    }
  }

  function shown({ id, startedAt, progress, result }: Training): object {
    const { state, values, windows, message, document } = result
    const started = new Date(startedAt).toISOString()
    return { id, state, progress, startedAt: started, values, windows, message, document }
  }

  function forget(id: string): boolean {
    table.delete(id)
    return trainings.delete(id)
  }

  /** Runs an interrupted training again. One that was interrupted too often may be what ends the gateway. */
  function runAgain(training: Training, request: Json, runs: number): void {
    if (runs < limits.patternTrainingRuns.value) {
      table.countRun(training.id)
      void run(training, parseTrainingRequest(request, training.startedAt))
    } else {
      const message = `the gateway ended ${runs} times during this training; request it again`
      end(training, { state: 'failed', values: 0, message })
    }
  }

  return Object.freeze({
    /** Takes the trainings of earlier processes, and runs one again that did not end. */
    restore(): void {
      for (const { id, startedAt, runs, request, result } of table.all()) {
        const training = add(id, startedAt)
        if (result === undefined) runAgain(training, request, runs)
        else Object.assign(training, { result, progress: result.state === 'trained' ? 1 : 0 })
      }
    },
    /**
     * @throws ngsi-ld.bad-request-data for an invalid request
     * @throws http.busy while another training runs
     */
    start(json: Json): { readonly id: string } {
      const startedAt = now()
      const request = parseTrainingRequest(json, startedAt)
      if ([...trainings.values()].some(isRunning))
        throw new GatewayError('http.busy', 'another training is running; wait for its end or delete it')
      const id = randomBytes(12).toString('hex')
      table.put({ id, startedAt, request: json })
      const training = add(id, startedAt)
      if (trainings.size > limits.patternTrainingsKept.value) forget(trainings.keys().next().value!)
      void run(training, request)
      return shown(training) as { readonly id: string }
    },
    /** Without the trained documents, which may be large. */
    all: () => [...trainings.values()].map((training) => ({ ...shown(training), document: undefined })),
    get(id: string): object | undefined {
      const training = trainings.get(id)
      return training && shown(training)
    },
    /** Cancels a training that runs, and forgets it. Returns false if there is none with this id. */
    remove(id: string): boolean {
      trainings.get(id)?.cancel.abort(new GatewayError('store.closed', 'the training was cancelled'))
      return forget(id)
    },
  })
}
