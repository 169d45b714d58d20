/**
 * After any sequence of changes, outages and restarts on both sides, and of lost subscriptions, the index
 * contains the same data about a registered broker as the broker itself.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { setLimit } from '#test/kit/ceilings.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { indexBuilt } from '#test/kit/index-of-file.ts'
import { iri, quality, sensor, stream } from '#test/spec/discovery/site.ts'

setLimit('followCheckMs', 1000)

type Step =
  | { readonly kind: 'put' | 'delete'; readonly what: 0 | 1 | 2; readonly n: number; readonly value: number }
  | { readonly kind: 'broker away' | 'broker back' | 'index again' | 'subscriptions lost' }

const changes = fc.record({
  kind: fc.constantFrom('put' as const, 'put' as const, 'delete' as const),
  what: fc.constantFrom(0 as const, 1 as const, 2 as const),
  n: fc.integer({ min: 1, max: 12 }),
  value: fc.integer({ min: 0, max: 100 }),
})
const events = fc.record({
  kind: fc.constantFrom(
    'broker away' as const,
    'broker back' as const,
    'index again' as const,
    'subscriptions lost' as const,
  ),
})
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof({ arbitrary: changes, weight: 8 }, { arbitrary: events, weight: 1 }),
  {
    minLength: 30,
    maxLength: 60,
    size: 'max',
  },
)

const types = [iri.IotStream, iri.Sensor, iri.Quality] as const
const entityOf = (
  what: 0 | 1 | 2,
  n: number,
  value: number,
): { readonly id: string; readonly level?: object } =>
  what === 0
    ? { ...stream(n), level: { type: 'Property', value } }
    : what === 1
      ? sensor(n, [value / 10, 50])
      : quality(n, value / 100)

const entities = '/ngsi-ld/v1/entities'
const brokerSettings = { SELVEDGE_INDEXING_ENABLED: 'false', SELVEDGE_RANKING_ENABLED: 'false' }

/** An index and a broker that run a sequence of steps. */
async function createSite(folder: string) {
  let index = await startGatewayInside(join(folder, 'index'))
  let broker: GatewayInside | undefined = await startGatewayInside(join(folder, 'broker'), brokerSettings)
  const port = String(broker.httpPort)
  const back = async (): Promise<GatewayInside> => {
    broker ??= await startGatewayInside(join(folder, 'broker'), {
      ...brokerSettings,
      SELVEDGE_HTTP_PORT: port,
    })
    return broker
  }

  async function change(step: Extract<Step, { n: number }>): Promise<void> {
    const at = await back()
    const entity = entityOf(step.what, step.n, step.value)
    if (step.kind === 'delete') await at.ask('DELETE', `${entities}/${entity.id}`)
    else await at.send('POST', '/ngsi-ld/v1/entityOperations/upsert', [entity])
  }

  async function said(gateway: GatewayInside, prefix: string): Promise<unknown[]> {
    const lists = await Promise.all(
      types.map(async (type) => {
        const answer = await gateway.get(`${prefix}${entities}?type=${encodeURIComponent(type)}&limit=1000`)
        return answer.json() as { id: string }[]
      }),
    )
    return lists.flat().toSorted((a, b) => a.id.localeCompare(b.id))
  }

  return {
    register: async () => {
      await indexBuilt(index)
      return index.send('POST', '/indexing/api/broker', { host: `http://127.0.0.1:${port}` })
    },
    async do(step: Step): Promise<void> {
      if ('n' in step) return change(step)
      if (step.kind === 'broker away') {
        await broker?.close()
        broker = undefined
      } else if (step.kind === 'broker back') await back()
      else if (step.kind === 'index again') {
        await index.close()
        index = await startGatewayInside(join(folder, 'index'))
      } else {
        const at = await back()
        const known = (await at.get('/ngsi-ld/v1/subscriptions?limit=100')).json() as { id: string }[]
        for (const { id } of known) await at.ask('DELETE', `/ngsi-ld/v1/subscriptions/${id}`)
      }
    },
    of: async () => said(await back(), ''),
    indexed: async () => said(index, '/indexing'),
    async close(): Promise<void> {
      await index.close()
      await broker?.close()
    },
  }
}

it('the index equals the broker', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const folder = mkdtempSync(join(tmpdir(), 'selvedge-indexed-'))
      const site = await createSite(folder)
      try {
        expect((await site.register()).status).toBe(201)
        for (const step of sequence) await site.do(step)
        await vi.waitFor(async () => expect(await site.indexed()).toEqual(await site.of()), {
          timeout: 100_000,
          interval: 300,
        })
      } finally {
        await site.close()
        rmSync(folder, { recursive: true, force: true })
      }
    }),
    { numRuns: 3, endOnFailure: true },
  )
})
