/** The training thread: progress, cancelling, and mistakes that only the values show. */
import { describe, expect, it } from 'vitest'
import { createSeededRandom } from '#statistics/seeded-random.ts'
import { trainInThread } from './trainer.ts'
import type { TrainingJob } from './training-job.ts'
import { parseTrainingRequest } from './training-request.ts'

const hourMs = 3_600_000

/** A job over as many hours of two streams. */
function jobOf(hours: number, method = 'gaussian-mixture'): TrainingJob {
  const random = createSeededRandom(2)
  const body = {
    streams: ['urn:s:1', 'urn:s:2'],
    observableProperties: ['urn:p:1', 'urn:p:2'],
    from: '2026-03-01T00:00:00Z',
    method,
  }
  const request = parseTrainingRequest(body, Date.UTC(2027, 0))
  const slice = () => ({
    times: Float64Array.from({ length: hours }, (_, i) => request.from + i * hourMs),
    values: Float64Array.from({ length: hours }, () => random() + Math.round(random()) * 4),
  })
  return { request, values: [[slice()], [slice()]] }
}

describe('the training thread', () => {
  it('trains the same model of the same job', async () => {
    const options = { signal: new AbortController().signal, onProgress: () => {} }
    const [first, second] = await Promise.all([
      trainInThread(jobOf(40), options),
      trainInThread(jobOf(40), options),
    ])
    expect(first).toEqual(second)
    expect(first.windows).toBe(29)
  })

  it('reports progress and ends when it is cancelled', async () => {
    const cancel = new AbortController()
    const shares: number[] = []
    const training = trainInThread(jobOf(4000), {
      signal: cancel.signal,
      onProgress(share) {
        shares.push(share)
        cancel.abort(new TypeError('enough'))
      },
    })
    await expect(training).rejects.toThrow('enough')
    expect(shares[0]).toBeGreaterThan(0)
    expect(shares[0]).toBeLessThan(1)
    const reported = shares.length
    await new Promise((resolve) => setImmediate(resolve))
    expect(shares).toHaveLength(reported)
  })

  it.each([
    [5, 'from: the history has 0 windows of 12 rows, at least 2 are needed'],
    [6000, 'temporal: has more than 5000 windows; use a larger step or a shorter span'],
  ])('rejects %i hours', async (hours, message) => {
    const options = { signal: new AbortController().signal, onProgress: () => {} }
    await expect(trainInThread(jobOf(hours), options)).rejects.toThrow(message)
  })
})
