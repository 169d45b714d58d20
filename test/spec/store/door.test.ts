/**
 * The door on the real writer thread and SQLite: order and grouping, refusal of one work without effect on
 * others, groups that cannot be written, upkeep, and answers after the flush.
 */
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Stage } from '#broker/commit/stage.ts'
import type { Work } from '#broker/commit/work-queue.ts'
import type { Writer } from '#store/writer/writer.ts'
import { type BareDoor, type BareDoorOptions, codeOf, openBareDoor, put } from '#test/kit/bare-door.ts'
import { immortalWriter } from '#test/kit/broker.ts'
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

/** Lets a group decide all its works, however busy the machine is. */
const decideWholeGroups = (): void => setLimit('groupDecideMs', 60_000)

/** Makes the whole group fail: the columns accept no NULL. */
const spoil = (stage: Stage): void => stage.write('subscription.insert', 1, null, null, null)
const refuse = (): never => {
  throw new GatewayError('ngsi-ld.not-found', 'no')
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('works', () => {
  it('are decided in order of arrival, together, and see what earlier ones staged', async () => {
    decideWholeGroups()
    const { door, records, commits } = await open()
    const order: number[] = []
    await Promise.all(
      [1, 2, 3].map((n) =>
        door.commit((stage) => {
          order.push(n)
          const sum = ((stage.scratch.get('sum') as number | undefined) ?? 0) + n
          stage.scratch.set('sum', sum)
          put('sum', sum)(stage)
        }),
      ),
    )
    expect(order).toEqual([1, 2, 3])
    expect(records.meta('sum')).toBe(6)
    expect(commits.value).toBe(1)
  })

  it('that took long to decide are copied to the writer in a turn of their own', async () => {
    const turnOf = (): number => performance.nodeTiming.uvMetricsInfo.loopCount
    const turns: number[] = []
    const observed: Writer = {
      ...writer,
      write(...sent) {
        turns.push(turnOf())
        writer.write(...sent)
      },
    }
    const bare = await openBareDoor(observed)
    opened.push(bare)
    const decide = (ms: number) =>
      bare.door.commit((stage) => {
        turns.push(turnOf())
        for (const until = performance.now() + ms; performance.now() < until; );
        put('n', ms)(stage)
      })
    await decide(2 * limits.usedTurnMs.value)
    expect(turns[1]).toBeGreaterThan(turns[0]!)
    expect(bare.records.meta('n')).toBe(2 * limits.usedTurnMs.value)
  })

  it('are on disk, readable and published when they are answered', async () => {
    const { door, records } = await open()
    const seen: unknown[] = []
    door.submit({
      urgent: true,
      bytes: 1,
      decide(stage) {
        put('a', 1)(stage)
        stage.published(() => seen.push('published'))
      },
      answer: () => seen.push(records.meta('a')),
    })
    await door.commit(() => undefined)
    expect(seen).toEqual(['published', 1])
  })

  it('after one that ends its time slot get a later time, except for those that belong to an earlier work', async () => {
    const { door } = await open()
    const times: number[] = []
    const note = (stage: Stage, more?: (stage: Stage) => void): void => {
      put(`n${times.length}`, 1)(stage)
      times.push(stage.at)
      more?.(stage)
    }
    const dated = (stage: Stage): void => {
      times.push(stage.dated(times[0]!).at)
      put('dated', 1)(stage)
    }
    await Promise.all([
      door.commit((stage) => note(stage)),
      door.commit((stage) => note(stage, ({ closeTime }) => closeTime())),
      door.commit((stage) => note(stage)),
      door.commit(dated),
    ])
    const [before, closed, after, earlier] = times as [number, number, number, number]
    expect(closed).toBe(before)
    expect(after).toBeGreaterThan(closed)
    expect(earlier).toBe(before)
  })

  it('that stage nothing cost no commit', async () => {
    const { door, commits } = await open()
    expect(await door.commit(() => 'nothing')).toBe('nothing')
    expect(commits.value).toBe(0)
  })

  it('get log numbers without gaps, whatever was undone', async () => {
    const { door, records } = await open()
    const note = (stage: Stage): void => void stage.record(1, {})
    const halfway = (stage: Stage): void => {
      note(stage)
      refuse()
    }
    await Promise.all([note, halfway, note].map((decide) => codeOf(door.commit(decide))))
    await Promise.all([note, spoil].map((decide) => codeOf(door.commit(decide))))
    await door.commit(note)
    expect(records.logAfter(0, 10).map(({ n }) => n)).toEqual([1, 2, 3, 4])
    const told = [1, 2, 3, 4].map((n) => JSON.parse(Buffer.from(records.logAt(n)!.body).toString()).n)
    expect(told).toEqual([1, 2, 3, 4])
  })
})

describe('a work that throws', () => {
  it('is refused alone', async () => {
    decideWholeGroups()
    const { door, records, commits } = await open()
    const answers = await Promise.all(
      [put('a', 1), refuse, put('b', 2)].map((decide) => codeOf(door.commit(decide))),
    )
    expect(answers).toEqual(['ok', 'ngsi-ld.not-found', 'ok'])
    expect([records.meta('a'), records.meta('b')]).toEqual([1, 2])
    expect(commits.value).toBe(1)
  })

  it('leaves none of its staged state, and does not affect the others', async () => {
    const { door, records } = await open()
    const events: string[] = []
    const halfway = (stage: Stage): void => {
      put('half', 1)(stage)
      stage.published(() => events.push('published'))
      stage.undone(() => events.push('undone'))
      stage.scratch.set('half', true)
      refuse()
    }
    const look = (stage: Stage): void => put('seen', stage.scratch.has('half') ? 1 : 0)(stage)
    const answers = await Promise.all(
      [put('a', 1), halfway, look].map((decide) => codeOf(door.commit(decide))),
    )
    expect(answers).toEqual(['ok', 'ngsi-ld.not-found', 'ok'])
    expect([records.meta('a'), records.meta('half'), records.meta('seen')]).toEqual([1, undefined, 0])
    expect(events).toEqual(['undone'])
  })

  it('halfway, many times, costs the others a bounded number of decisions', async () => {
    const { door, records } = await open()
    const count = 200
    let decided = 0
    const works = Array.from({ length: count }, (_, i) => {
      return door.commit((stage) => {
        decided++
        put(`k${i}`, i)(stage)
        if (i % 2 === 1) refuse()
      })
    })
    const answers = await Promise.all(works.map(codeOf))
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(count / 2)
    expect(records.meta('k198')).toBe(198)
    expect(records.meta('k199')).toBeUndefined()
    expect(decided).toBeLessThan(12 * count)
  })
})

describe('a group that cannot be written', () => {
  it('is retried work by work, so that a failing work does not affect the others', async () => {
    const { door, records, events } = await open()
    const answers = await Promise.all(
      [put('a', 1), spoil, put('b', 2)].map((decide) => codeOf(door.commit(decide))),
    )
    expect(answers).toEqual(['ok', 'store.failed', 'ok'])
    expect([records.meta('a'), records.meta('b')]).toEqual([1, 2])
    expect(events).toContain('store.commit-failed')
  })

  it('is decided again, including works refused because of a work that then failed', async () => {
    const { door } = await open()
    const create = (isBad: boolean) => (stage: Stage) => {
      if (stage.scratch.has('it')) throw new GatewayError('ngsi-ld.already-exists', 'it exists')
      stage.scratch.set('it', true)
      if (isBad) spoil(stage)
      else put('it', 1)(stage)
    }
    const answers = await Promise.all([create(true), create(false)].map((one) => codeOf(door.commit(one))))
    expect(answers).toEqual(['store.failed', 'ok'])
  })

  it('with a row that cannot be cloned affects only the work of that row', async () => {
    const { door, records } = await open()
    const unsendable = (stage: Stage): void => stage.write('meta.put', 'f', refuse as never)
    const answers = await Promise.all([put('a', 1), unsendable].map((decide) => codeOf(door.commit(decide))))
    expect(answers).toEqual(['ok', 'gateway.internal'])
    expect(records.meta('a')).toBe(1)
    expect(await codeOf(door.commit(put('b', 1)))).toBe('ok')
  })
})

describe('upkeep', () => {
  it('that throws affects no other work, and pauses', async () => {
    let asked = 0
    const { door, records, events, clock } = await open({
      upkeep: {
        attach(group) {
          asked++
          group.stage.write('meta.put', 'upkeep', 1)
          refuse()
        },
      },
    })
    expect(await codeOf(door.commit(put('a', 1)))).toBe('ok')
    expect(await codeOf(door.commit(put('b', 1)))).toBe('ok')
    expect([records.meta('a'), records.meta('b'), records.meta('upkeep')]).toEqual([1, 1, undefined])
    expect(asked).toBe(1)
    expect(events).toContain('gateway.fault')
    clock.pass(11_000)
    await door.commit(put('c', 1))
    expect(asked).toBe(2)
  })

  it('that breaks the commit is left out of it', async () => {
    const { door, records, clock } = await open({ upkeep: { attach: (group) => spoil(group.stage) } })
    expect(await codeOf(door.commit(put('a', 1)))).toBe('ok')
    expect(records.meta('a')).toBe(1)
    clock.pass(11_000)
    expect(await codeOf(door.commit(put('a', 2)))).toBe('ok')
    expect(records.meta('a')).toBe(2)
  })

  it('gets a group of its own when nothing else is to be written', async () => {
    let isDue = false
    const { door, records } = await open({
      upkeep: {
        attach(group) {
          if (isDue) group.stage.write('meta.put', 'upkeep', 1)
        },
      },
    })
    isDue = true
    door.nudge()
    await expect.poll(() => records.meta('upkeep')).toBe(1)
  })

  it('of several groups comes before waiting works, in their order, unless the door closes', async () => {
    let groups = 3
    const { door, records } = await open({
      upkeep: {
        isFirst: () => groups > 0,
        attach({ stage }) {
          stage.write('meta.put', 'upkeep', groups)
          stage.published(() => void groups--)
        },
      },
    })
    const seen: unknown[] = []
    const note = (stage: Stage): void => {
      seen.push(groups)
      put('a', seen.length)(stage)
    }
    await Promise.all([door.commit(note), door.commit(note)])
    expect(seen).toEqual([0, 0])
    expect(records.meta('a')).toBe(2)
    groups = 3
    const last = door.commit(note)
    await door.close()
    await last
    expect(seen).toEqual([0, 0, 3])
    expect(groups).toBe(2)
  })

  it('that fails keeps no work waiting', async () => {
    const { door, records } = await open({
      upkeep: { isFirst: () => true, attach: (group) => spoil(group.stage) },
    })
    expect(await codeOf(door.commit(put('a', 1)))).toBe('ok')
    expect(records.meta('a')).toBe(1)
  })

  it('notes each committed group, also while it pauses', async () => {
    const rows: number[] = []
    const { door } = await open({
      upkeep: {
        note: (group) => group.onWritten(() => rows.push(group.rowCount())),
        attach: (group) => spoil(group.stage),
      },
    })
    for (let value = 1; value <= 3; value++) await door.commit(put('a', value))
    expect(rows).toEqual([1, 1, 1])
  })
})

describe('answers', () => {
  const works = (count: number, answer: (i: number) => void): Work[] =>
    Array.from({ length: count }, (_, i) => ({
      urgent: i === 0,
      bytes: 1,
      decide: put('a', i),
      answer: () => answer(i),
    }))

  it('are sent in slices of 16 per turn of the event loop, in order', async () => {
    const { door } = await open()
    const answered: number[] = []
    for (const work of works(100, (i) => answered.push(i))) door.submit(work)
    let most = 0
    while (answered.length < 100) {
      const before = answered.length
      await turn()
      most = Math.max(most, answered.length - before)
    }
    expect(answered).toEqual(Array.from({ length: 100 }, (_, i) => i))
    expect(most).toBeLessThanOrEqual(2 * limits.answersPerTurn.value)
  })

  it('reach all callers, even if one of them throws', async () => {
    const { door, events } = await open()
    const answered: number[] = []
    for (const work of works(40, (i) => (i === 3 ? refuse() : answered.push(i)))) door.submit(work)
    await expect.poll(() => answered.length).toBe(39)
    expect(events).toEqual(['gateway.fault'])
    expect(await codeOf(door.commit(put('b', 1)))).toBe('ok')
  })

  it('reach all callers, even if publishing staged state throws', async () => {
    const { door, events } = await open()
    let isPublished = false
    await door.commit((stage) => {
      put('a', 1)(stage)
      stage.published(refuse)
      stage.published(() => {
        isPublished = true
      })
    })
    expect(isPublished).toBe(true)
    expect(events).toEqual(['gateway.fault'])
  })
})
