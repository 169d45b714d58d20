/**
 * A registered broker read whole: type by type, page by page, at a pace. Pages are followed by the links of the broker, else by
 * offset; a broker that gives smaller pages, knows no counts, or repeats itself is read all the same, or told as refusing.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isObject } from '#ngsi-ld/values/json.ts'
import { listIn } from '#plugins/indexing/entries/broker-messages.ts'
import type { Answered, Asking, Result, Trouble } from './broker-requests.ts'

export interface Page {
  readonly items: readonly Json[]
  /** When it was asked for, ms of the monotonic clock: what was told since is newer. */
  readonly askedAt: number
  /** Of its type, with the first page, where the broker says so. */
  readonly total: number | undefined
}

const entities = '/ngsi-ld/v1/entities'
const json = { Accept: 'application/json' }
/** From what a broker gives best to what any broker gives; entities that it would ask others for are theirs to tell. */
const forms = [500, 100].flatMap((size) =>
  ['&count=true&local=true', '&count=true', ''].map((more) => ({ size, more })),
)

/** How a broker is asked: the first form that it took. */
interface Way {
  form: number
}

/** Reads all entities of the types. Undefined when it came to the end. */
export async function readAll(
  types: readonly string[],
  { asking, monotonic }: { readonly asking: Asking; readonly monotonic: () => number },
  take: (page: Page) => Promise<void>,
): Promise<Trouble | undefined> {
  const way: Way = { form: 0 }
  for (const type of types) {
    const trouble = await readType(type, { asking, monotonic, way }, take)
    if (trouble !== undefined) return trouble
  }
  return undefined
}

async function readType(
  type: string,
  {
    asking,
    monotonic,
    way,
  }: { readonly asking: Asking; readonly monotonic: () => number; readonly way: Way },
  take: (page: Page) => Promise<void>,
): Promise<Trouble | undefined> {
  const seen = new Set<string>()
  const query = `type=${encodeURIComponent(type)}`
  let askedAt = monotonic()
  let first = await firstPage(query, asking, way)
  for (let pages = 0; pages < limits.indexPagesMax.value; pages++) {
    if ('trouble' in first.answer) return first.answer.trouble
    const answer = first.answer.value
    const items = listIn(answer.text)
    if (items === undefined) return { kind: 'refused', reason: 'what it answers is no list of entities' }
    const fresh = items.filter((item) => !seen.has(idOf(item)))
    for (const item of fresh) seen.add(idOf(item))
    const counted = Number(answer.headers['ngsild-results-count'] ?? Number.NaN)
    await take({
      items: fresh,
      askedAt,
      total: pages === 0 && Number.isFinite(counted) ? counted : undefined,
    })
    const path =
      fresh.length === 0
        ? undefined
        : pathBehind(answer, { query, size: first.size, read: items.length, all: seen.size })
    if (path === undefined) return undefined
    await asking.pace()
    askedAt = monotonic()
    first = { size: first.size, answer: await asking.want({ method: 'GET', path, headers: json }, [200]) }
  }
  return { kind: 'refused', reason: `it has more than ${limits.indexPagesMax.value} pages of ${type}` }
}

const idOf = (item: Json): string => {
  const id = isObject(item) ? item['id'] : undefined
  return typeof id === 'string' ? id : ''
}

/** The first page, asked for in the first way that the broker takes. */
async function firstPage(
  query: string,
  asking: Asking,
  way: Way,
): Promise<{ readonly size: number; readonly answer: Result<Answered> }> {
  for (let form = way.form; ; form++) {
    const { size, more } = forms[form]!
    await asking.pace()
    const path = `${entities}?${query}&limit=${size}${more}`
    const answer = await asking.want({ method: 'GET', path, headers: json }, [200])
    const isEnd = 'value' in answer || answer.trouble.kind === 'down' || form + 1 === forms.length
    if (!isEnd) continue
    if ('value' in answer) way.form = form
    return { size, answer }
  }
}

function pathBehind(
  answered: Answered,
  { query, size, read, all }: { query: string; size: number; read: number; all: number },
): string | undefined {
  const next = nextPath(answered)
  if (next !== undefined) return next
  return read < size ? undefined : `${entities}?${query}&limit=${size}&offset=${all}`
}

/** The path of the next page, where the broker names one. */
function nextPath({ headers }: Answered): string | undefined {
  const next = /<([^<>]*)>\s*;[^<]*\brel="?next\b/.exec(headers['link'] ?? '')?.[1]
  return next?.includes('?') === true ? `${entities}${next.slice(next.indexOf('?'))}` : undefined
}

/** Which of these ids there still are; entities of them. */
export async function readByIds(
  ids: readonly string[],
  types: readonly string[],
  asking: Asking,
): Promise<Result<readonly Json[]>> {
  const found: Json[] = []
  const type = types.map(encodeURIComponent).join(',')
  for (let at = 0; at < ids.length; at += limits.indexIdsPerRequest.value) {
    const some = ids.slice(at, at + limits.indexIdsPerRequest.value)
    const query = `type=${type}&id=${some.map(encodeURIComponent).join(',')}`
    let path: string | undefined = `${entities}?${query}&limit=${some.length}`
    // A page of large entities ends before its limit.
    for (let all = 0; path !== undefined; ) {
      await asking.pace()
      const asked: string = path
      let answer = await asking.want({ method: 'GET', path: withLocal(asked), headers: json }, [200])
      if ('trouble' in answer && answer.trouble.kind === 'refused')
        answer = await asking.want({ method: 'GET', path: asked, headers: json }, [200])
      if ('trouble' in answer) return answer
      const items = listIn(answer.value.text)
      if (items === undefined)
        return { trouble: { kind: 'refused', reason: 'what it answers is no list of entities' } }
      found.push(...items)
      all += items.length
      path = all < some.length ? nextPath(answer.value) : undefined
    }
  }
  return { value: found }
}

/** Addresses of brokers that its registrations of context sources name for these types. */
export async function readSources(types: readonly string[], asking: Asking): Promise<readonly string[]> {
  const found = new Set<string>()
  for (let offset = 0; offset < limits.indexSourcesMax.value; ) {
    await asking.pace()
    const path = `/ngsi-ld/v1/csourceRegistrations?type=${types.map(encodeURIComponent).join(',')}&limit=100&offset=${offset}`
    const answer = await asking.want({ method: 'GET', path, headers: json }, [200])
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

/** A link repeats what was asked for. */
const withLocal = (path: string): string => (path.includes('&local=true') ? path : `${path}&local=true`)
