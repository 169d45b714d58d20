/**
 * Reads from the broker whose entities are ranked: all candidates page by page up to fixed limits, and
 * entities by id in batches. Follows Link headers, or offsets if there are none; stops if a broker repeats
 * entities. Remembers the page size that the broker accepts.
 */

import { limits } from '#base/limits/limits.ts'
import { nextTurn } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { BrokerAnswer, BrokerPort, ListAnswer, WrittenAnswer } from '#contract'
import { isList, isObject, type JsonObject, own, parsedJson } from '#ngsi-ld/values/json.ts'

/** Entities of a broker in this process, or the text of a response. */
export type BackendAnswer = WrittenAnswer | ListAnswer
/** Why there are no candidates: a response to pass on, no response, or an unreadable one. */
export type BackendOutcome =
  | { readonly kind: 'read'; readonly first: BackendAnswer; readonly warnings: readonly string[] }
  | { readonly kind: 'refused'; readonly answer: WrittenAnswer }
  | { readonly kind: 'unanswered'; readonly reason: string }
  /** Not a list of entities, or too many bytes. */
  | { readonly kind: 'unreadable' | 'oversized'; readonly reason: string }

/** Common to all requests of one ranking. */
export interface RequestOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Deadline, monotonic ms. */
  readonly until: number
}

export interface EntitiesById {
  readonly entities: ReadonlyMap<string, JsonObject>
  /** Why entities could not be read; for people. */
  readonly failure: string | undefined
}

/**
 * Which of the entities to request: those with one of the attributes, limited to these; those of a type, in
 * full; or those that match a query, as it shows them.
 */
export type WantedEntities =
  | { readonly attrs: readonly string[] }
  | { readonly types: readonly string[] }
  | { readonly query: readonly string[] }

/** Path of a page of at most that many entities. */
type PageAddress = (limit: number) => string

/**
 * @param items entities or features that no earlier page had.
 * @param bytes of all pages so far.
 */
export type Take = (items: JsonObject[], bytes: number) => void | Promise<void>

export const entitiesPath = '/ngsi-ld/v1/entities'
/** Sizes for a broker that rejects a larger page; any broker supports the last one. */
const smallerPages = [500, 100] as const

export type Backend = ReturnType<typeof createBackend>

export function createBackend(port: BrokerPort, monotonic: () => number) {
  /** Entities in the largest page that the broker accepts, as far as known. */
  let accepted: number = limits.rankingPageEntities.value

  async function send(
    path: string,
    { headers, signal, until }: RequestOptions,
  ): Promise<BrokerAnswer | ListAnswer> {
    const remaining = until - monotonic()
    if (remaining <= 0) return { failure: 'timeout', reason: 'the time limit for all pages has passed' }
    const request = { method: 'GET', path, headers, signal, timeoutMs: remaining }
    return port.list === undefined ? port.exchange(request) : port.list(request)
  }

  /**
   * Requests a page of at most `wanted` entities. If the broker accepts only a smaller page, remembers that
   * size. If it refuses every size, the reason is another one.
   */
  async function request(at: PageAddress, wanted: number, options: RequestOptions) {
    for (let limit = Math.min(wanted, accepted); ; ) {
      const answer = await send(at(limit), options)
      const smaller = isTooLarge(answer) ? smallerPages.find((size) => size < limit) : undefined
      if (smaller === undefined) {
        if (isAnswer(answer) && limit < wanted) accepted = limit
        return { answer, limit }
      }
      limit = smaller
    }
  }

  return Object.freeze({
    /**
     * Reads the candidates of a query page by page.
     * @param query parameters as written, without paging.
     * @throws ngsi-ld.too-many-results above the limits.
     */
    async candidates(query: readonly string[], options: RequestOptions, take: Take): Promise<BackendOutcome> {
      const seen = new Set<string>()
      const warnings = new Set<string>()
      let first: BackendAnswer | undefined
      let bytes = 0
      let isLinking = false
      // How large entities are is unknown before the first page.
      let wanted: number = smallerPages.at(-1)!
      let at: PageAddress = (limit) => addressOf([...query, `limit=${limit}`])
      for (let pages = 1; ; pages++) {
        const { answer, limit } = await request(at, wanted, options)
        const page = pageIn(answer, port.address)
        if (page.kind !== 'page') return page
        const { items, warning } = page
        first ??= page.answer
        if (warning !== undefined) warnings.add(warning)
        bytes += page.bytes
        const fresh = items.filter(({ id }) => typeof id === 'string' && !seen.has(id))
        for (const { id } of fresh) seen.add(id as string)
        checkCeilings(seen.size, bytes, pages)
        // A broker in this process answers without yielding to the event loop.
        await nextTurn()
        await take(fresh, bytes)
        await nextTurn()
        const next = nextLink(page.answer)
        isLinking ||= next !== undefined
        // If a broker has linked earlier pages, a page without a link is the last.
        const isLast = fresh.length === 0 || (next === undefined && isLinking)
        if (isLast || (next === undefined && items.length < limit))
          return { kind: 'read', first, warnings: [...warnings] }
        const offset = seen.size
        at = (size) =>
          next === undefined
            ? addressOf([...query, `limit=${size}`, `offset=${offset}`])
            : resized(next, size)
        const fitting = Math.floor((limits.rankingPageBytes.value * items.length) / page.bytes)
        wanted = Math.max(1, Math.min(limits.rankingPageEntities.value, fitting))
      }
    },

    /** Entities by id. Never rejects; entities that were not found are omitted. */
    async byId(
      ids: readonly string[],
      wanted: WantedEntities,
      options: RequestOptions,
    ): Promise<EntitiesById> {
      const entities = new Map<string, JsonObject>()
      let failure: string | undefined
      const waiting = portionsOf(ids, wanted)
      const lane = async (): Promise<void> => {
        for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
          // As for candidates: other work runs between the answers of a broker in this process.
          await nextTurn()
          const answer = await send(path, options)
          const page = pageIn(answer, port.address)
          if (page.kind !== 'page') {
            failure = reasonOf(answer)
            continue
          }
          // A page of large entities may be shorter than its limit.
          const next = nextLink(page.answer)
          if (next !== undefined) waiting.push(next)
          for (const item of page.items) if (typeof item['id'] === 'string') entities.set(item['id'], item)
        }
      }
      await Promise.all([lane(), lane(), lane(), lane()])
      return { entities, failure }
    },
  })
}

interface BackendPage {
  readonly kind: 'page'
  readonly answer: BackendAnswer
  readonly items: readonly JsonObject[]
  readonly bytes: number
  readonly warning: string | undefined
}

/** The entities in a response, or why there are none. */
function pageIn(
  answer: BrokerAnswer | ListAnswer,
  address: string,
): BackendPage | Exclude<BackendOutcome, { kind: 'read' }> {
  if ('failure' in answer)
    return { kind: answer.failure === 'oversized' ? 'oversized' : 'unanswered', reason: answer.reason }
  if (!isAnswer(answer)) return { kind: 'refused', answer }
  const items = itemsOf(answer)
  if (items === undefined)
    return { kind: 'unreadable', reason: `${address} did not answer with a list of entities` }
  const bytes = 'items' in answer ? answer.bytes : answer.text.length
  return { kind: 'page', answer, items, bytes, warning: answer.headers['ngsild-warning'] }
}

function nextLink({ headers }: BackendAnswer): string | undefined {
  const next = /<([^<>]*)>\s*;[^<]*\brel="?next\b/.exec(headers['link'] ?? '')?.[1]
  return next?.includes('?') === true ? `${entitiesPath}${next.slice(next.indexOf('?'))}` : undefined
}

/** A link with another page size; unchanged if it does not page by offset. */
const resized = (link: string, limit: number): string =>
  /[?&]offset=/.test(link) ? link.replace(/(?<=[?&]limit=)\d+/, String(limit)) : link

const addressOf = (pairs: readonly string[]): string => `${entitiesPath}?${pairs.join('&')}`

/** Whether a broker rejected the page size. */
const isTooLarge = (answer: BrokerAnswer | ListAnswer): boolean =>
  'status' in answer && (answer.status === 403 || (answer.status === 400 && /limit/i.test(answer.text)))

function checkCeilings(entities: number, bytes: number, pages: number): void {
  const beyond = (what: string): GatewayError =>
    new GatewayError(
      'ngsi-ld.too-many-results',
      `too many candidates to rank (${what}): request fewer with type, q or a geo-query`,
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

/** Whether the response has entities. */
const isAnswer = (answer: BrokerAnswer | ListAnswer): answer is BackendAnswer =>
  'items' in answer || ('status' in answer && (answer.status === 200 || answer.status === 203))

const reasonOf = (answer: BrokerAnswer | ListAnswer): string => {
  if ('failure' in answer) return answer.reason
  return 'status' in answer && answer.status !== 200 ? `status ${answer.status}` : 'not a list of entities'
}

/** Entities of a list, or features of a collection. */
function itemsOf(answer: BackendAnswer): readonly JsonObject[] | undefined {
  if ('items' in answer) return answer.items
  const json = parsedJson(answer.text)
  const items = isObject(json) && json['type'] === 'FeatureCollection' ? own(json, 'features') : json
  return isList(items) && items.every(isObject) ? items : undefined
}

/** Paths that request entities by id, each with as many ids as an address can hold. */
function portionsOf(ids: readonly string[], wanted: WantedEntities): string[] {
  const rest = restOf(wanted)
  const room = limits.rankingAddressBytes.value - rest.length
  const portions: string[] = []
  let written: string[] = []
  let count = 0
  let length = 0
  const close = (): void => {
    if (count > 0) portions.push(`${entitiesPath}?id=${written.join(',')}${rest}&limit=${count}`)
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

/** Parameters beside ids. */
function restOf(wanted: WantedEntities): string {
  const listed = (names: readonly string[]): string => names.map(encodeURIComponent).join(',')
  if ('attrs' in wanted) return `&attrs=${listed(wanted.attrs)}`
  if ('types' in wanted) return `&type=${listed(wanted.types)}`
  return wanted.query.map((pair) => `&${pair}`).join('')
}

/** A page size that any broker supports. */
const idsPerPage = 100
