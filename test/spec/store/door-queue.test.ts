/**
 * The queue before the door, on the real write path: how long works linger, how many may wait, and how it
 * ends.
 */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { Work } from '#broker/commit/work-queue.ts'
import { type BareDoor, type BareDoorOptions, codeOf, openBareDoor, put } from '#test/kit/bare-door.ts'
import { immortalWriter } from '#test/kit/broker.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'

const writer = immortalWriter()
afterAll(() => writer.end())

const opened: BareDoor[] = []
afterEach(async () => {
  restoreLimits()
  for (const bare of opened.splice(0)) await bare.close()
})

async function open(options?: BareDoorOptions): Promise<BareDoor> {
  const bare = await openBareDoor(writer, options)
  opened.push(bare)
  return bare
}

describe('linger', () => {
  const observation = (answer: () => void): Work => ({
    urgent: false,
    bytes: 1,
    decide: put('o', 1),
    answer,
  })
  const timed = async (submit: (answer: () => void) => void): Promise<number> => {
    const start = performance.now()
    await new Promise<void>((resolve) => submit(resolve))
    return performance.now() - start
  }
  const calmlyTimed = async (submit: (answer: () => void) => void): Promise<number> => {
    const passed = calmTime()
    await new Promise<void>((resolve) => submit(resolve))
    return passed()
  }

  it('delays lone observations to group them', async () => {
    const { door, commits } = await open({ lingerMs: 1000 })
    const waited = await timed((answer) => {
      door.submit(observation(() => undefined))
      setTimeout(() => door.submit(observation(answer)), 50)
    })
    expect(waited).toBeGreaterThan(990)
    expect(commits.value).toBe(1)
  })

  it('ends with the first work that is not an observation', async () => {
    const { door } = await open({ lingerMs: 2000 })
    const waited = await calmlyTimed((answer) => {
      door.submit(observation(answer))
      setImmediate(() => void door.commit(put('a', 1)))
    })
    expect(waited).toBeLessThan(1000)
  })

  it(`ends at ${limits.lingerObservationsMax.value} observations`, async () => {
    const { door } = await open({ lingerMs: 2000 })
    const waited = await calmlyTimed((answer) => {
      for (let i = 0; i < limits.lingerObservationsMax.value; i++) door.submit(observation(answer))
    })
    expect(waited).toBeLessThan(1000)
  })

  it('ends when the door closes', async () => {
    const { door, records } = await open({ lingerMs: 2000 })
    let isAnswered = false
    door.submit(
      observation(() => {
        isAnswered = true
      }),
    )
    const passed = calmTime()
    await door.close()
    expect(passed()).toBeLessThan(1000)
    expect([isAnswered, records.meta('o')]).toEqual([true, 1])
  })
})

describe('a full queue', () => {
  it('accepts no more works, and calls back when it has room', async () => {
    setLimit('queueWorksMax', 10)
    const { door } = await open()
    const works = Array.from({ length: 15 }, (_, i) => codeOf(door.commit(put(`k${i}`, i))))
    const room = new Promise<boolean>((resolve) => {
      door.whenRoom(() => resolve(door.submit({ urgent: true, bytes: 1, decide() {}, answer() {} })))
    })
    const answers = await Promise.all(works)
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(10)
    expect(answers.filter((answer) => answer === 'store.busy')).toHaveLength(5)
    expect(await room).toBe(true)
  })

  it('reserves a quarter of its places for works other than observations', async () => {
    setLimit('queueWorksMax', 12)
    const { door } = await open()
    const offer = (urgent: boolean): boolean => door.submit({ urgent, bytes: 1, decide() {}, answer() {} })
    const isTaken = Array.from({ length: 20 }, (_, i) => offer(i >= 15))
    expect(isTaken.slice(0, 15).filter(Boolean)).toHaveLength(9)
    expect(isTaken.slice(15)).toEqual([true, true, true, false, false])
  })

  it('is full by bytes too, but accepts a large work when it is empty', async () => {
    setLimit('queueBytesMax', 1000)
    const { door } = await open()
    const commit = (bytes: number) => codeOf(door.commit(put('a', 1), { bytes }))
    expect(await Promise.all([commit(5000), commit(10)])).toEqual(['ok', 'store.busy'])
    expect(await Promise.all([commit(600), commit(600)])).toEqual(['ok', 'store.busy'])
    expect(await commit(1000)).toBe('ok')
  })

  it('empties in groups that are bounded by rows, in order', async () => {
    setLimit('groupRowsMax', 10)
    const { door, commits, records } = await open({ lingerMs: 1000 })
    const order: number[] = []
    const passed = calmTime()
    await new Promise<void>((resolve) => {
      for (let i = 0; i < 30; i++) {
        door.submit({
          urgent: false,
          bytes: 1,
          decide(stage) {
            order.push(i)
            for (let row = 0; row < 6; row++) put(`k${i}-${row}`, i)(stage)
          },
          answer: () => i === 29 && resolve(),
        })
      }
      door.nudge()
    })
    expect(order).toEqual(Array.from({ length: 30 }, (_, i) => i))
    expect(commits.value).toBe(15)
    expect(records.meta('k29-5')).toBe(29)
    // They lingered once.
    expect(passed()).toBeLessThan(900)
  })

  it('empties in groups that are bounded by works and by bytes', async () => {
    const { door, commits } = await open()
    const entityWorks = limits.groupEntityWorksMax.value + 1
    await Promise.all(Array.from({ length: entityWorks }, (_, i) => door.commit(put('a', i))))
    expect(commits.value).toBe(2)
    await Promise.all([1, 2].map(() => door.commit(put('a', 1), { bytes: limits.groupBytesMax.value })))
    expect(commits.value).toBe(4)
  })
})

describe('the end', () => {
  it('waits for queued works and for every answer, then refuses', async () => {
    const { door, database } = await open()
    const answers: unknown[] = []
    for (let i = 0; i < 300; i++) {
      door.submit({
        urgent: true,
        bytes: 1,
        decide: put(`k${i}`, i),
        answer: () => answers.push(database.prepare('SELECT value FROM meta WHERE key = ?').get(`k${i}`)),
      })
    }
    const closed = door.close()
    expect(await codeOf(door.commit(put('late', 1)))).toBe('store.closed')
    await closed
    expect(answers).toHaveLength(300)
    expect(answers.every((answer) => answer !== undefined)).toBe(true)
    await door.close()
  })

  it('completes although upkeep is due again and again', async () => {
    const { door } = await open({ upkeep: { attach: (group) => group.stage.write('meta.put', 'u', 1) } })
    for (let i = 0; i < 5; i++) door.nudge()
    await door.close()
    door.nudge()
    expect(door.status().waiting).toBe(0)
  })
})
