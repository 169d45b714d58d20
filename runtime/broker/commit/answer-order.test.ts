/** Works are answered in arrival order and in slices, across groups. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createAnswerOrder } from './answer-order.ts'
import type { Work } from './work-queue.ts'

const perTurn = limits.answersPerTurn.value
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('answers', () => {
  const answered: string[] = []
  const logged: string[] = []
  let done = 0
  const answers = createAnswerOrder({
    log: createLog({ level: 'error', clock: systemClock, write: (line) => logged.push(line) }),
    metrics: createMetrics(),
    onAnswered: () => done++,
  })
  const work = (name: string): Work => ({
    urgent: false,
    bytes: 0,
    decide: () => undefined,
    answer: (error) => void answered.push(error === undefined ? name : `${name} ${error.code}`),
  })
  const group = (name: string, length: number): Work[] =>
    Array.from({ length }, (_, i) => work(`${name}${i}`))
  const names = (...groups: readonly [string, number][]): string[] =>
    groups.flatMap(([name, length]) => Array.from({ length }, (_, i) => `${name}${i}`))

  it('are sent in order, also when a group arrives before the previous one is answered', async () => {
    const sizes: readonly [string, number][] = [
      ['a', 3 * perTurn + 1],
      ['b', 2],
      ['c', 2 * perTurn],
    ]
    answers.enqueue(group(...sizes[0]!), new Map())
    expect(answered).toEqual(names(['a', perTurn]))
    for (const [name, length] of sizes.slice(1)) answers.enqueue(group(name, length), new Map())
    expect(answers.isDone()).toBe(false)
    for (let i = 0; i < 4; i++) await turn()
    expect(answered).toEqual(names(...sizes))
    expect([answers.isDone(), done]).toEqual([true, 1])
  })

  it('report refused works, and one answer that throws does not affect the others', () => {
    answered.length = 0
    const [first, second, third] = group('d', 3) as [Work, Work, Work]
    const throwing: Work = {
      ...second,
      answer() {
        throw new TypeError('not ours')
      },
    }
    answers.enqueue([first, throwing, third], new Map([[third, new GatewayError('store.full', 'no room')]]))
    expect(answered).toEqual(['d0', 'd2 store.full'])
    expect(logged).toHaveLength(1)
    answers.enqueue([], new Map())
    expect(done).toBe(3)
  })
})
