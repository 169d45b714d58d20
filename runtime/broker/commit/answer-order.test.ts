/** Works are answered in the order they came, slice by slice, whatever group they were in. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createAnswers } from './answer-order.ts'
import type { Work } from './work-queue.ts'

const perTurn = limits.answersPerTurn.value
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('answers', () => {
  const told: string[] = []
  const logged: string[] = []
  let done = 0
  const answers = createAnswers({
    log: createLog({ level: 'error', clock: systemClock, write: (line) => logged.push(line) }),
    metrics: createMetrics(),
    onAnswered: () => done++,
  })
  const work = (name: string): Work => ({
    ...{ urgent: false, bytes: 0, decide: () => undefined },
    answer: (error) => void told.push(error === undefined ? name : `${name} ${error.code}`),
  })
  const group = (name: string, length: number): Work[] =>
    Array.from({ length }, (_, i) => work(`${name}${i}`))
  const names = (...groups: readonly [string, number][]): string[] =>
    groups.flatMap(([name, length]) => Array.from({ length }, (_, i) => `${name}${i}`))

  it('leave in order, also where a group is there before another is answered whole', async () => {
    const sizes: readonly [string, number][] = [
      ['a', 3 * perTurn + 1],
      ['b', 2],
      ['c', 2 * perTurn],
    ]
    answers.give(group(...sizes[0]!), new Map())
    expect(told).toEqual(names(['a', perTurn]))
    for (const [name, length] of sizes.slice(1)) answers.give(group(name, length), new Map())
    expect(answers.isDone()).toBe(false)
    for (let i = 0; i < 4; i++) await turn()
    expect(told).toEqual(names(...sizes))
    expect([answers.isDone(), done]).toEqual([true, 1])
  })

  it('tell who was refused, and one that throws keeps nobody from theirs', () => {
    told.length = 0
    const [first, second, third] = group('d', 3) as [Work, Work, Work]
    const throwing: Work = {
      ...second,
      answer() {
        throw new TypeError('not ours')
      },
    }
    answers.give([first, throwing, third], new Map([[third, new GatewayError('store.full', 'no room')]]))
    expect(told).toEqual(['d0', 'd2 store.full'])
    expect(logged).toHaveLength(1)
    answers.give([], new Map())
    expect(done).toBe(3)
  })
})
