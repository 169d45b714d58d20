/**
 * A client that follows the next links receives each continuously matching entity exactly once, in the
 * requested order. Meanwhile other entities are created, deleted, and changed to match or not, between and
 * during the pages.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { gatewayOfFile, property } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const batch = (operation: string, body: unknown): ReturnType<typeof gateway.send> =>
  gateway.send('POST', `/ngsi-ld/v1/entityOperations/${operation}`, body)

const write = fc.record({
  act: fc.constantFrom('create', 'delete', 'hide', 'show', 'touch' as const),
  /** Index of a changing entity. */
  which: fc.nat(9),
})
type Write = typeof write extends fc.Arbitrary<infer T> ? T : never

let worlds = 0

it('next links return every unchanged entity once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { minLength: 4, maxLength: 24 }),
      fc.array(fc.array(write, { maxLength: 6 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 1, max: 5 }),
      fc.constantFrom('', '&orderBy=rank', '&orderBy=rank;desc', '&orderBy=group,rank;desc'),
      async (stays, rounds, limit, order) => {
        const type = `World${++worlds}`
        const all = stays.map((doesStay, at) => entityOf(type, at, doesStay))
        await batch('create', all)
        const staying = all.filter((_, at) => stays[at]).map(({ id }) => id)
        const seen = await followed(`${path}?type=${type}&q=shown&limit=${limit}${order}`, async (page) => {
          const writes = rounds[page % rounds.length]!
          await Promise.all(writes.map((each, at) => apply(type, each, { stays, fresh: 100 * page + at })))
        })
        expect(seen.filter((id) => staying.includes(id)).toSorted()).toEqual(staying.toSorted())
        expect(new Set(seen).size).toBe(seen.length)
        if (order !== '')
          expectOrder(
            seen.filter((id) => staying.includes(id)),
            all,
            order,
          )
        await Promise.all((await everyId(type)).map((id) => gateway.ask('DELETE', `${path}/${id}`)))
      },
    ),
    { numRuns: 25 },
  )
})

interface Ranked {
  readonly id: string
  readonly rank: { readonly value: number }
  readonly group: { readonly value: number }
}

function entityOf(type: string, at: number, doesStay: boolean): Ranked {
  const values = { rank: property((at * 7) % 5), group: property(at % 2), shown: property(true) }
  return {
    id: `urn:ngsi-ld:${type}:${doesStay ? 'stays' : 'goes'}:${at}`,
    type,
    ...values,
  } as unknown as Ranked
}

async function apply(
  type: string,
  { act, which }: Write,
  { stays, fresh }: { readonly stays: readonly boolean[]; readonly fresh: number },
): Promise<void> {
  const at = which % stays.length
  const id = `urn:ngsi-ld:${type}:${stays[at] === true ? 'stays' : 'goes'}:${at}`
  const attrs = `${path}/${id}/attrs`
  if (act === 'create') await gateway.send('POST', path, { ...entityOf(type, 1000 + fresh, false) })
  else if (act === 'touch') await gateway.send('PATCH', attrs, { other: property(fresh) })
  else if (stays[at] !== true) {
    if (act === 'delete') await gateway.ask('DELETE', `${path}/${id}`)
    else if (act === 'hide') await gateway.ask('DELETE', `${attrs}/shown`)
    else await gateway.send('POST', attrs, { shown: property(true) })
  }
}

async function followed(start: string, between: (page: number) => Promise<void>): Promise<string[]> {
  const seen: string[] = []
  let next: string | undefined = start
  for (let page = 0; next !== undefined; page++) {
    // A page is read while the writes of its round are in progress.
    const writes = page < 40 ? between(page) : Promise.resolve()
    const answer = await gateway.get(next)
    expect([next, answer.status]).toEqual([next, 200])
    seen.push(...(answer.json() as { id: string }[]).map(({ id }) => id))
    next = /<([^>]*)>;\s*rel="next"/.exec(answer.headers['link'] ?? '')?.[1]
    await writes
  }
  return seen
}

async function everyId(type: string): Promise<string[]> {
  const answer = await gateway.get(`${path}?type=${type}&limit=1000`)
  return (answer.json() as { id: string }[]).map(({ id }) => id)
}

/** Equal entities are in the order of creation. */
function expectOrder(seen: readonly string[], all: readonly Ranked[], order: string): void {
  const sign = order.endsWith('desc') ? -1 : 1
  const expected = all
    .filter(({ id }) => seen.includes(id))
    .toSorted(
      (a, b) =>
        (order.includes('group') ? a.group.value - b.group.value : 0) || sign * (a.rank.value - b.rank.value),
    )
  const keys = ({ rank, group }: Ranked): string =>
    order.includes('group') ? `${group.value} ${rank.value}` : `${rank.value}`
  const found = seen.map((id) => all.find((entity) => entity.id === id)!)
  expect(found.map(keys)).toEqual(expected.map(keys))
}
