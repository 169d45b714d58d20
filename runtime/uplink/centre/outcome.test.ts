/** The meaning of responses: only a response in the form of a broker accepts or refuses a step for good. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import type { PeerAnswer } from '#federation/peer.ts'
import type { Step } from '#uplink/steps/step-plan.ts'
import { createSettle, done, type SendOutcome } from './outcome.ts'

const step = (id: string): Step => ({ kind: 'put', entity: { id, type: 'A' }, attributes: new Map() })
const [a, b, c] = [step('urn:a'), step('urn:b'), step('urn:c')]
const answer = (status: number, body: unknown = '', headers = {}): PeerAnswer => ({
  status,
  headers,
  text: typeof body === 'string' ? body : JSON.stringify(body),
})
const problem = (entityId: string | undefined, status: number) => ({
  ...(entityId === undefined ? {} : { entityId }),
  error: { type: 'about:blank', title: 'no', status },
})
/** Resends steps, which are then accepted, and records them. */
function settling({ isBroker = true }: { readonly isBroker?: boolean } = {}) {
  let now = 0
  const settle = createSettle({ now: () => now, monotonic: () => now }, () => Promise.resolve(isBroker))
  const again: string[][] = []
  return {
    again,
    pass: (ms: number) => (now += ms),
    settle: (steps: readonly Step[], sent: PeerAnswer): Promise<SendOutcome> =>
      settle(steps, sent, (some) => {
        again.push(some.map(({ entity }) => entity.id))
        return Promise.resolve(done())
      }),
  }
}

describe('a sent step', () => {
  it.each([
    [201, ''],
    [204, ''],
    [200, ['urn:a']],
    [200, { success: ['urn:a'], errors: [] }],
  ])('is accepted by %d %j', async (status, body) => {
    expect(await settling().settle([a], answer(status, body))).toEqual(done())
  })

  it.each([
    [200, '<html>Please log in</html>'],
    [200, { login: 'https://login.example.org' }],
    [200, ['https://login.example.org']],
    [202, ''],
    [205, ''],
    [301, ''],
    [302, '<html>Found</html>'],
    [401, ''],
    [402, ''],
    [403, ''],
    [404, '404 page not found'],
    [407, ''],
    [429, ''],
    [500, ''],
    [503, ''],
  ])('is retried after %d %j', async (status, body) => {
    const outcome = await settling().settle([a, b], answer(status, body))
    expect(outcome).toMatchObject({ kind: 'later', isUnreachable: false })
  })

  it('is refused by 400', async () => {
    const { settle, again } = settling()
    const bad = { type: 'https://uri.etsi.org/ngsi-ld/errors/BadRequestData', title: 'bad' }
    expect(await settle([a], answer(400, bad))).toEqual(done([{ step: a, reason: '400 bad' }]))
    await settle([a, b, c], answer(400))
    expect(again).toEqual([['urn:a', 'urn:b'], ['urn:c']])
  })

  it.each<[string, PeerAnswer, SendOutcome]>([
    ['refused', answer(400, '<html>blocked</html>'), done([{ step: a, reason: '400 <html>blocked</html>' }])],
    ['taken', answer(200), done()],
  ])('is %s by an ambiguous response that is repeated after a broker responded', async (_, sent, outcome) => {
    expect(await settling({ isBroker: false }).settle([a], sent)).toMatchObject({ kind: 'later' })
    const settle = createSettle({ now: () => 0, monotonic: () => 0 }, () => Promise.resolve(true))
    let tries = 0
    const again = (steps: readonly Step[]): Promise<SendOutcome> => {
      tries++
      return settle(steps, sent, again)
    }
    for (const count of [1, 2]) {
      expect(await again([a])).toEqual(outcome)
      expect(tries).toBe(2 * count)
    }
    // An intermediary responded for the broker, which is back now.
    expect(await settle([a], sent, () => settle([a], answer(204), again))).toEqual(done())
  })

  it.each([
    ['0', undefined],
    ['-5', undefined],
    ['soon', undefined],
    ['2', 2000],
    ['3000000', 3_600_000],
  ])('waits at most an hour for Retry-After: %s', async (header, retryAfterMs) => {
    const outcome = await settling().settle([a], answer(503, '', { 'retry-after': header }))
    expect(outcome).toMatchObject({ kind: 'later', retryAfterMs })
  })
})

describe('the outcome per item', () => {
  it('accepts items named as succeeded, and refuses items named as failed', async () => {
    const { settle, again } = settling()
    const outcome = await settle([a, b], answer(207, { success: ['urn:a'], errors: [problem('urn:b', 400)] }))
    expect(outcome).toEqual(done([{ step: b, reason: '400 no' }]))
    expect(
      await settle([a, b], answer(200, { success: ['urn:a'], errors: [problem('urn:b', 400)] })),
    ).toEqual(outcome)
    expect(again).toEqual([])
  })

  it.each([
    ['nothing', []],
    ['an error of nobody', [problem(undefined, 400)]],
    ['an error of somebody else', [problem('urn:x', 400)]],
  ])('resends items that the response describes by %s', async (_, errors) => {
    const { settle, again } = settling()
    expect(await settle([a, b, c], answer(207, { success: ['urn:a', 'urn:c'], errors }))).toEqual(done())
    expect(again).toEqual([['urn:b']])
    await settle([a, b, c], answer(207, { errors }))
    expect(again.slice(1)).toEqual([['urn:a', 'urn:b'], ['urn:c']])
    expect(await settle([a], answer(207, { success: [] }))).toMatchObject({ kind: 'later' })
  })

  it('accepts all items named as succeeded, whatever other errors there are', async () => {
    for (const errors of [[problem('urn:x', 400)], [problem('urn:x', 503)]]) {
      const sent = answer(207, { success: ['urn:a'], errors })
      expect(await settling().settle([a], sent)).toEqual(done())
    }
  })

  it('recognizes absence by the status, or else by the error type', async () => {
    const error = { type: 'https://uri.etsi.org/ngsi-ld/errors/ResourceNotFound', title: 'none' }
    for (const one of [error, { ...error, status: 404 }]) {
      const sent = answer(207, { success: [], errors: [{ entityId: 'urn:a', error: one }] })
      expect(await settling().settle([a], sent)).toMatchObject({ refused: [{ step: a, isAbsent: true }] })
    }
  })

  it.each([401, 403, 405, 410])('refuses an item if it alone gets %d', async (status) => {
    const { settle } = settling()
    const one = answer(207, { success: ['urn:a'], errors: [problem('urn:b', status)] })
    expect(await settle([a, b], one)).toEqual(done([{ step: b, reason: `${status} no` }]))
    const all = answer(207, { success: [], errors: [problem('urn:a', status), problem('urn:b', status)] })
    expect(await settle([a, b], all)).toMatchObject({ kind: 'later' })
  })

  it.each([429, 500, 503])('refuses an item that gets %d, but only after a long time', async (status) => {
    const { settle, pass } = settling()
    const sent = answer(207, { success: ['urn:a'], errors: [problem('urn:b', status)] })
    for (let i = 0; i < 10; i++) expect(await settle([a, b], sent)).toMatchObject({ kind: 'later' })
    pass(limits.uplinkSetbackMs.value)
    expect(await settle([a, b], sent)).toEqual(done([{ step: b, reason: `${status} no` }]))
    // Accepted in between: the time starts over.
    await settle([b], answer(204))
    expect(await settle([a, b], sent)).toMatchObject({ kind: 'later' })
  })

  it('waits longer for a single item, because others might fail too', async () => {
    const { settle, pass } = settling()
    const sent = answer(207, { success: [], errors: [problem('urn:a', 503)] })
    for (let i = 0; i < 10; i++) await settle([a], sent)
    pass(limits.uplinkSetbackMs.value)
    expect(await settle([a], sent)).toMatchObject({ kind: 'later' })
    pass(limits.uplinkSetbackAloneMs.value)
    expect(await settle([a], sent)).toEqual(done([{ step: a, reason: '503 no' }]))
  })

  it('refuses a single item that the response names differently, so that it does not hold up others', async () => {
    const { settle, pass } = settling()
    const sent = answer(207, { errors: [problem('a', 400)] })
    for (let i = 0; i < 10; i++) expect(await settle([a], sent)).toMatchObject({ kind: 'later' })
    pass(limits.uplinkSetbackAloneMs.value)
    expect(await settle([a], sent)).toEqual(done([{ step: a, reason: 'answered 207 without naming it' }]))
  })
})
