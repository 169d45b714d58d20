/**
 * The @contexts that a tenant hosts (GS CIM 009, 5.13). Users add some; the gateway creates others when a
 * Link header must name an inline context. They are on disk, never change, and belong to one tenant. At the
 * ceiling, the least recently used created context that no subscription names is deleted.
 */
import { hash } from 'node:crypto'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Door } from '#broker/commit/door.ts'
import type { Json } from '#contract/pipeline.ts'
import { tooManyResults } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Records } from '#store/tables/records.ts'
import { hostedIdOf } from './context-resolver.ts'

export type HostedKind = 'Hosted' | 'ImplicitlyCreated'

export interface HostedContext {
  readonly id: string
  readonly kind: HostedKind
  readonly createdAt: number
  readonly bytes: number
}

export interface HostedContexts {
  /** In the order they were added. */
  list(): readonly HostedContext[]
  get(id: string): HostedContext | undefined
  /** The document, with its `@context` member. */
  document(id: string): Json | undefined
  /** @throws ngsi-ld.too-many-results, http.body-too-large */
  add(id: string, document: Json): Promise<void>
  /**
   * Stores an inline context and returns its id, which is always the same for the same context. @throws as
   * `add` does.
   */
  keep(context: Json): Promise<string>
  remove(id: string): Promise<void>
}

export function createHostedContexts(ports: {
  readonly records: Pick<Records, 'context' | 'contexts'>
  readonly door: Pick<Door, 'commit'>
  readonly clock: Clock
  /** URLs of the contexts that subscriptions use. */
  readonly inUse: () => readonly string[]
}): HostedContexts {
  const { records, door, clock, inUse } = ports
  /** Created contexts are in order of use. */
  const known = new Map<string, HostedContext>()
  for (const { url: id, kind, fetched, bytes } of records.contexts()) {
    if (kind === 'Hosted' || kind === 'ImplicitlyCreated')
      known.set(id, { id, kind, createdAt: fetched, bytes })
  }

  /** The created contexts to delete before one of this size (bytes) is added. */
  function toEvict(bytes: number): readonly string[] {
    const made = [...known.values()].filter(({ kind }) => kind === 'ImplicitlyCreated')
    let count = made.length
    let sum = made.reduce((all, one) => all + one.bytes, bytes)
    const isFull = () =>
      count >= limits.contextsImplicitMax.value || sum > limits.contextsImplicitBytesMax.value
    const evicted: string[] = []
    const kept = new Set(isFull() ? inUse().map(hostedIdOf) : [])
    for (const one of made) {
      if (!isFull()) break
      if (kept.has(one.id)) continue
      evicted.push(one.id)
      count--
      sum -= one.bytes
    }
    return evicted
  }

  const put = async (id: string, kind: HostedKind, document: Json): Promise<void> => {
    const text = JSON.stringify(document)
    if (text.length > limits.contextBytesMax.value) {
      throw new GatewayError(
        'http.body-too-large',
        `the @context exceeds ${limits.contextBytesMax.value} bytes`,
      )
    }
    const bytes = Buffer.byteLength(text)
    const evicted = kind === 'Hosted' ? [] : toEvict(bytes)
    if (known.size - evicted.length >= limits.contextsHostedMax.value) {
      throw tooManyResults(
        `the tenant already has the maximum of ${limits.contextsHostedMax.value} @contexts`,
      )
    }
    const createdAt = clock.now()
    await door.commit((stage) => {
      for (const one of evicted) stage.write('context.delete', one)
      stage.write('context.put', id, kind, createdAt, null, text)
      stage.published(() => {
        for (const one of evicted) known.delete(one)
        known.set(id, { id, kind, createdAt, bytes })
      })
    })
  }

  return Object.freeze({
    list: () => [...known.values()].toSorted((a, b) => a.createdAt - b.createdAt),
    get: (id) => known.get(id),
    document(id) {
      const row = known.has(id) ? records.context(id) : undefined
      return row === undefined ? undefined : (JSON.parse(row.body) as Json)
    },
    add: (id, document) => put(id, 'Hosted', document),
    async keep(context) {
      const id = hash('sha256', JSON.stringify(context)).slice(0, 32)
      const found = known.get(id)
      if (found === undefined) await put(id, 'ImplicitlyCreated', { '@context': context })
      else if (found.kind === 'ImplicitlyCreated') {
        known.delete(id)
        known.set(id, found)
      }
      return id
    },
    async remove(id) {
      await door.commit((stage) => {
        stage.write('context.delete', id)
        stage.published(() => known.delete(id))
      })
    },
  } satisfies HostedContexts)
}
