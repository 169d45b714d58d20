/**
 * The trainings of this process: one runs at a time, in a thread of its own. The newest finished ones are
 * kept in memory until a restart; a trained model lasts once a client registers it.
 */
import { randomBytes } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError, toGatewayError } from '#base/register/errors.ts'
import type { BrokerPort, Json } from '#contract'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { readStreamValues } from './stream-values.ts'
import { trainInThread } from './trainer.ts'
import { parseTrainingRequest, type TrainingRequest } from './training-request.ts'

export interface TrainingsPorts {
  readonly broker: BrokerPort
  readonly now: () => number
  /** Aborted when the plugin stops. */
  readonly signal: AbortSignal
}

interface Training {
  readonly id: string
  readonly startedAt: number
  readonly cancel: AbortController
  state: 'reading' | 'training' | 'trained' | 'failed'
  /** Share of the work of its state, 0 to 1. */
  progress: number
  values: number
  windows?: number
  message?: string
  document?: JsonObject
}

export type Trainings = ReturnType<typeof createTrainings>

export function createTrainings({ broker, now, signal }: TrainingsPorts) {
  const trainings = new Map<string, Training>()

  const isRunning = ({ state }: Training): boolean => state === 'reading' || state === 'training'

  async function run(training: Training, request: TrainingRequest): Promise<void> {
    const stop = AbortSignal.any([signal, training.cancel.signal])
    try {
      const values = await readStreamValues(broker, request, {
        signal: stop,
        onProgress(share, count) {
          training.progress = share
          training.values = count
        },
      })
      training.state = 'training'
      training.progress = 0
      const { document, windows } = await trainInThread(
        { request, values },
        {
          signal: stop,
          onProgress(share) {
            training.progress = share
          },
        },
      )
      training.windows = windows
      training.document = { observableProperties: request.observableProperties, ...document }
      training.state = 'trained'
    } catch (error) {
      training.state = 'failed'
      training.message = toGatewayError(error).message
    }
  }

  function shown({ id, startedAt, state, progress, values, windows, message, document }: Training): object {
    const started = new Date(startedAt).toISOString()
    return { id, state, progress, startedAt: started, values, windows, message, document }
  }

  return Object.freeze({
    /**
     * @throws ngsi-ld.bad-request-data for an invalid request
     * @throws http.busy while another training runs
     */
    start(json: Json): { readonly id: string } {
      const request = parseTrainingRequest(json, now())
      if ([...trainings.values()].some(isRunning))
        throw new GatewayError('http.busy', 'another training is running; wait for its end or delete it')
      const id = randomBytes(12).toString('hex')
      const training: Training = {
        id,
        startedAt: now(),
        cancel: new AbortController(),
        state: 'reading',
        progress: 0,
        values: 0,
      }
      trainings.set(id, training)
      if (trainings.size > limits.patternTrainingsKept.value) trainings.delete(trainings.keys().next().value!)
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
      return trainings.delete(id)
    },
  })
}
