/**
 * Reads a registered broker in full: type by type, page by page, at a limited rate. Follows the broker's Link
 * headers, or offsets if there are none. Handles brokers that send smaller pages, send no counts, or repeat
 * entities. Reports a broker that cannot be read as refusing.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isObject } from '#ngsi-ld/values/json.ts'
import { listIn } from './broker-messages.ts'
import type { BrokerClient, BrokerResponse, RequestTrouble, Result } from './broker-requests.ts'

export interface BrokerPage {
  readonly items: readonly Json[]
  /** When the page was requested, monotonic ms. Notifications received since then are newer. */
  readonly requestedAt: number
  /** Number of entities of the type; only with the first page, and only if the broker sends it. */
  readonly total: number | undefined
}

const entities = '/ngsi-ld/v1/entities'
const json = { Accept: 'application/json' }
/**
 * Request forms, from the most capable to one that any broker accepts. `local=true` skips entities that the
 * broker would fetch from others, because those brokers report them.
 */
const forms = [500, 100].flatMap((size) =>
  ['&count=true&local=true', '&count=true', ''].map((more) => ({ size, more })),
)

/** The first request form that the broker accepted. */
interface AcceptedForm {
  form: number
}

interface ReadingPorts {
  readonly client: BrokerClient
  readonly monotonic: () => number
}

/** Takes a page; `enough` ends the read. */
type TakePage = (page: BrokerPage) => Promise<void> | Promise<'enough' | undefined>

/** Reads all entities of the types. Returns undefined on success. */
export async function readAll(
  types: readonly string[],
  ports: ReadingPorts,
  take: TakePage,
): Promise<RequestTrouble | undefined> {
  const accepted: AcceptedForm = { form: 0 }
  for (const type of types) {
    const trouble = await readPages(`type=${encodeURIComponent(type)}`, { ...ports, accepted }, take)
    if (trouble !== undefined) return trouble
  }
  return undefined
}

/** Reads the entities that a query selects. Returns undefined on success. */
export async function readPages(
  query: string,
  { client, monotonic, accepted = { form: 0 } }: ReadingPorts & { readonly accepted?: AcceptedForm },
  take: TakePage,
): Promise<RequestTrouble | undefined> {
  const seen = new Set<string>()
  let requestedAt = monotonic()
  let first = await firstPage(query, client, accepted)
  for (let pages = 0; pages < limits.clientPagesMax.value; pages++) {
    if ('trouble' in first.answer) return first.answer.trouble
    const answer = first.answer.value
    const items = listIn(answer.text)
    if (items === undefined) return { kind: 'refused', reason: 'the response is not a list of entities' }
    const fresh = items.filter((item) => !seen.has(idOf(item)))
    for (const item of fresh) seen.add(idOf(item))
    const counted = Number(answer.headers['ngsild-results-count'] ?? Number.NaN)
    const taken = await take({
      items: fresh,
      requestedAt,
      total: pages === 0 && Number.isFinite(counted) ? counted : undefined,
    })
    const path =
      fresh.length === 0 || taken === 'enough'
        ? undefined
        : pathBehind(answer, { query, size: first.size, read: items.length, all: seen.size })
    if (path === undefined) return undefined
    await client.pace()
    requestedAt = monotonic()
    first = {
      size: first.size,
      answer: await client.request({ method: 'GET', path, headers: json }, [200]),
    }
  }
  return {
    kind: 'refused',
    reason: `the broker has more than ${limits.clientPagesMax.value} pages of ${query}`,
  }
}

const idOf = (item: Json): string => {
  const id = isObject(item) ? item['id'] : undefined
  return typeof id === 'string' ? id : ''
}

/** Requests the first page, with the first form that the broker accepts. */
async function firstPage(
  query: string,
  client: BrokerClient,
  accepted: AcceptedForm,
): Promise<{ readonly size: number; readonly answer: Result<BrokerResponse> }> {
  for (let form = accepted.form; ; form++) {
    const { size, more } = forms[form]!
    await client.pace()
    const path = `${entities}?${query}&limit=${size}${more}`
    const answer = await client.request({ method: 'GET', path, headers: json }, [200])
    const isEnd = 'value' in answer || answer.trouble.kind === 'down' || form + 1 === forms.length
    if (!isEnd) continue
    if ('value' in answer) accepted.form = form
    return { size, answer }
  }
}

function pathBehind(
  answered: BrokerResponse,
  { query, size, read, all }: { query: string; size: number; read: number; all: number },
): string | undefined {
  const next = nextPath(answered)
  if (next !== undefined) return next
  return read < size ? undefined : `${entities}?${query}&limit=${size}&offset=${all}`
}

/** The path of the next page, if the broker sends a link to it. */
function nextPath({ headers }: BrokerResponse): string | undefined {
  const next = /<([^<>]*)>\s*;[^<]*\brel="?next\b/.exec(headers['link'] ?? '')?.[1]
  return next?.includes('?') === true ? `${entities}${next.slice(next.indexOf('?'))}` : undefined
}

/** Returns those of the given entities that still exist at the broker. */
export async function readByIds(
  ids: readonly string[],
  types: readonly string[],
  client: BrokerClient,
): Promise<Result<readonly Json[]>> {
  const found: Json[] = []
  const type = types.map(encodeURIComponent).join(',')
  for (let at = 0; at < ids.length; at += limits.clientIdsPerRequest.value) {
    const some = ids.slice(at, at + limits.clientIdsPerRequest.value)
    const query = `type=${type}&id=${some.map(encodeURIComponent).join(',')}`
    let path: string | undefined = `${entities}?${query}&limit=${some.length}`
    // A page of large entities may be shorter than its limit.
    for (let all = 0; path !== undefined; ) {
      await client.pace()
      const requested: string = path
      let answer = await client.request({ method: 'GET', path: withLocal(requested), headers: json }, [200])
      if ('trouble' in answer && answer.trouble.kind === 'refused')
        answer = await client.request({ method: 'GET', path: requested, headers: json }, [200])
      if ('trouble' in answer) return answer
      const items = listIn(answer.value.text)
      if (items === undefined)
        return { trouble: { kind: 'refused', reason: 'the response is not a list of entities' } }
      found.push(...items)
      all += items.length
      path = all < some.length ? nextPath(answer.value) : undefined
    }
  }
  return { value: found }
}

/** Addresses of brokers that the broker's context source registrations name for these types. */
export async function readSources(
  types: readonly string[],
  client: BrokerClient,
): Promise<readonly string[]> {
  const found = new Set<string>()
  for (let offset = 0; offset < limits.clientSourcesMax.value; ) {
    await client.pace()
    const path = `/ngsi-ld/v1/csourceRegistrations?type=${types.map(encodeURIComponent).join(',')}&limit=100&offset=${offset}`
    const answer = await client.request({ method: 'GET', path, headers: json }, [200])
    const items = 'value' in answer ? listIn(answer.value.text) : undefined
    const isLast = !('value' in answer) || nextPath(answer.value) === undefined
    for (const item of items ?? []) {
      const endpoint = isObject(item) ? item['endpoint'] : undefined
      if (typeof endpoint === 'string' && /^https?:\/\//.test(endpoint)) found.add(endpoint)
    }
    if (items === undefined || items.length === 0 || (items.length < 100 && isLast)) break
    offset += items.length
  }
  return [...found]
}

/** A next link repeats the parameters of the request, so `local=true` may be present already. */
const withLocal = (path: string): string => (path.includes('&local=true') ? path : `${path}&local=true`)
