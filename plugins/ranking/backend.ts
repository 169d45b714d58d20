/**
 * The broker whose entities are ranked: all candidates page by page within ceilings, and linked entities by their ids,
 * many at a time. Pages are followed by the links of the broker, else by offset; a broker that repeats itself comes to
 * an end, too. Page sizes that it refuses are not asked for again.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerAnswer, BrokerPort, Json, ListAnswer, WrittenAnswer } from '#contract'
import { isList, isObject, type JsonObject, own } from '#ngsi-ld/values/json.ts'

/** Entities in process, or the text of an answer. */
export type Answered = WrittenAnswer | ListAnswer
/** Why there are no candidates: the answer to pass on, no answer, or one that cannot be read. */
export type Outcome =
  | { readonly kind: 'read'; readonly first: Answered; readonly warnings: readonly string[] }
  | { readonly kind: 'refused'; readonly answer: WrittenAnswer }
  | { readonly kind: 'silent'; readonly reason: string }
  /** No list of entities, or one of too many bytes. */
  | { readonly kind: 'garbled' | 'oversized'; readonly reason: string }

/** What goes with each request of one ranking. */
export interface Asking {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** When patience ends, ms of the monotonic clock. */
  readonly until: number
}

export interface Linked {
  readonly entities: ReadonlyMap<string, JsonObject>
  /** What could not be read, for a person. */
  readonly failure: string | undefined
}

/** What is asked for with ids: entities that have one of the attributes, with these alone; or of one of the types, whole. */
export type Wanted = { readonly attrs: readonly string[] } | { readonly types: readonly string[] }

export interface Backend {
  /**
   * Takes the candidates of a query, page after page.
   * @param query parameters as written, without pages.
   * @throws ngsi-ld.too-many-results beyond the ceilings.
   */
  candidates(query: readonly string[], asking: Asking, take: Take): Promise<Outcome>
  /** Entities by id. Never rejects; those not found are left out. */
  linked(ids: readonly string[], wanted: Wanted, asking: Asking): Promise<Linked>
}

/** @param items entities or features that no page before had. */
export type Take = (items: JsonObject[]) => void | Promise<void>

export const entitiesPath = '/ngsi-ld/v1/entities'
const pageSizes = [limits.rankingPageEntities.value, 500, 100] as const

export function createBackend(port: BrokerPort, monotonic: () => number): Backend {
  /** Index of the page size that the broker takes. */
  let size = 0

  async function ask(path: string, { headers, signal, until }: Asking): Promise<BrokerAnswer | ListAnswer> {
    const left = until - monotonic()
    if (left <= 0) return { failure: 'timeout', reason: 'the time for all pages is over' }
    const request = { method: 'GET', path, headers, signal, timeoutMs: left }
    return port.list === undefined ? port.exchange(request) : port.list(request)
  }

  /**
   * The first page, as large as the broker gives. Asked for from then on is
   * what it gave: what it refuses in every size says nothing of sizes.
   */
  async function firstPage(query: readonly string[], asking: Asking): Promise<BrokerAnswer | ListAnswer> {
    for (let tried = size; ; tried++) {
      const answer = await ask(addressOf([...query, `limit=${pageSizes[tried]}`]), asking)
      if (isTooLarge(answer) && tried + 1 < pageSizes.length) continue
      if (isAnswer(answer)) size = tried
      return answer
    }
  }

  /** Where the page behind one is, for a broker that does not say. */
  const pathBehind = (received: number, query: readonly string[], all: number): string | undefined =>
    received < pageSizes[size]!
      ? undefined
      : addressOf([...query, `limit=${pageSizes[size]}`, `offset=${all}`])

  return Object.freeze({
    async candidates(query, asking, take) {
      const seen = new Set<string>()
      const warnings = new Set<string>()
      let [first, bytes, isLinking] = [undefined as Answered | undefined, 0, false]
      let answer = await firstPage(query, asking)
      for (let pages = 1; ; pages++) {
        if ('failure' in answer)
          return { kind: answer.failure === 'oversized' ? 'oversized' : 'silent', reason: answer.reason }
        if (!isAnswer(answer)) return { kind: 'refused', answer }
        const items = itemsOf(answer)
        if (items === undefined)
          return { kind: 'garbled', reason: `${port.address} answered what is no list of entities` }
        first ??= answer
        if (answer.headers['ngsild-warning'] !== undefined) warnings.add(answer.headers['ngsild-warning'])
        bytes += 'items' in answer ? answer.bytes : answer.text.length
        const fresh = items.filter(({ id }) => typeof id === 'string' && !seen.has(id))
        for (const { id } of fresh) seen.add(id as string)
        checkCeilings(seen.size, bytes, pages)
        // A broker of this gateway answers without letting others pass.
        await nextTurn()
        await take(fresh)
        await nextTurn()
        const next = nextLink(answer)
        isLinking ||= next !== undefined
        // A broker that links its pages has no more where it does not.
        const isLast = fresh.length === 0 || (next === undefined && isLinking)
        const path = isLast ? undefined : (next ?? pathBehind(items.length, query, seen.size))
        if (path === undefined) return { kind: 'read', first, warnings: [...warnings] }
        answer = await ask(path, asking)
      }
    },

    async linked(ids, wanted, asking) {
      const entities = new Map<string, JsonObject>()
      let failure: string | undefined
      const waiting = portionsOf(ids, wanted)
      const lane = async (): Promise<void> => {
        for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
          const answer = await ask(path, asking)
          // A page of large entities ends before its limit.
          const next = isAnswer(answer) ? nextLink(answer) : undefined
          if (next !== undefined) waiting.push(next)
          const items = isAnswer(answer) ? itemsOf(answer) : undefined
          if (items === undefined) failure = reasonOf(answer)
          for (const item of items ?? []) if (typeof item['id'] === 'string') entities.set(item['id'], item)
        }
      }
      await Promise.all([lane(), lane(), lane(), lane()])
      return { entities, failure }
    },
  } satisfies Backend)
}

function nextLink({ headers }: Answered): string | undefined {
  const next = /<([^<>]*)>\s*;[^<]*\brel="?next\b/.exec(headers['link'] ?? '')?.[1]
  return next?.includes('?') === true ? `${entitiesPath}${next.slice(next.indexOf('?'))}` : undefined
}

const addressOf = (pairs: readonly string[]): string => `${entitiesPath}?${pairs.join('&')}`

/** Whether a broker says that a page is larger than it gives. */
const isTooLarge = (answer: BrokerAnswer | ListAnswer): boolean =>
  'status' in answer && (answer.status === 403 || (answer.status === 400 && /limit/i.test(answer.text)))

function checkCeilings(entities: number, bytes: number, pages: number): void {
  const beyond = (what: string): GatewayError =>
    new GatewayError(
      'ngsi-ld.too-many-results',
      `more candidates than can be ranked (${what}): ask for fewer by type, q or a geo-query`,
    )
  const [entitiesMax, bytesMax, pagesMax] = [
    limits.rankingCandidatesMax.value,
    limits.rankingBytesMax.value,
    limits.rankingPagesMax.value,
  ]
  if (entities > entitiesMax) throw beyond(`at most ${entitiesMax} entities`)
  if (bytes > bytesMax) throw beyond(`at most ${bytesMax} bytes`)
  if (pages > pagesMax) throw beyond(`at most ${pagesMax} pages`)
}

/** Whether there are entities in it. */
const isAnswer = (answer: BrokerAnswer | ListAnswer): answer is Answered =>
  'items' in answer || ('status' in answer && (answer.status === 200 || answer.status === 203))

const reasonOf = (answer: BrokerAnswer | ListAnswer): string => {
  if ('failure' in answer) return answer.reason
  return 'status' in answer && answer.status !== 200 ? `status ${answer.status}` : 'no list of entities'
}

/** Entities of a list, or features of a collection. */
function itemsOf(answer: Answered): readonly JsonObject[] | undefined {
  if ('items' in answer) return answer.items
  let json: Json
  try {
    json = JSON.parse(answer.text) as Json
  } catch {
    return undefined
  }
  const items = isObject(json) && json['type'] === 'FeatureCollection' ? own(json, 'features') : json
  return isList(items) && items.every(isObject) ? items : undefined
}

/** Paths that ask for ids, each as many as an address holds. */
function portionsOf(ids: readonly string[], wanted: Wanted): string[] {
  const listed = (names: readonly string[]): string => names.map(encodeURIComponent).join(',')
  const attrs = 'attrs' in wanted ? `&attrs=${listed(wanted.attrs)}` : `&type=${listed(wanted.types)}`
  const room = limits.rankingAddressBytes.value - attrs.length
  const portions: string[] = []
  let [written, count, length] = [[] as string[], 0, 0]
  const close = (): void => {
    if (count > 0) portions.push(`${entitiesPath}?id=${written.join(',')}${attrs}&limit=${count}`)
    ;[written, count, length] = [[], 0, 0]
  }
  for (const id of ids) {
    const text = encodeURIComponent(id).replaceAll('%3A', ':').replaceAll('%2F', '/')
    if (length + text.length > room || count >= idsPerPage) close()
    written.push(text)
    count++
    length += text.length + 1
  }
  close()
  return portions
}

/** What the page of any broker holds. */
const idsPerPage = 100
