/**
 * Adds the platform @context to bodies in `application/ld+json` that have none: the original clients cannot
 * send one, and a broker rejects them. A batch has it in each entity.
 */
import { limits } from '#base/limits/limits.ts'
import type { ProxiedRequest } from '#contract'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'
import { isList, isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import type { CachedRequest } from '#plugins/orchestrator/cache/cache-key.ts'

const context = isObject(platformContextDocument) ? platformContextDocument['@context'] : null
const contextMember = `"@context":${JSON.stringify(context)}`

const paths = /^\/ngsi-ld\/v1\/(?:entities|entityOperations|temporal\/entities|subscriptions)(?:[/?]|$)/

/**
 * The request with a @context; as it is if it has one, if it is not of these paths, or if it is large.
 *
 * @param request the same request, as its connection parsed it.
 */
export async function withPlatformContext(
  forwarded: ProxiedRequest,
  { method, target, headers }: CachedRequest,
): Promise<ProxiedRequest> {
  if (!/^(?:POST|PUT|PATCH)$/.test(method) || !paths.test(target)) return forwarded
  if (!/^application\/ld\+json\b/i.test(headers.get('content-type') ?? '')) return forwarded
  const bytes = Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)
  if (bytes > limits.orchestratorContextBytes.value || headers.has('content-encoding')) return forwarded
  const body = forwarded.body ?? (await forwarded.environment.body())
  if (body.includes('"@context"')) return { ...forwarded, body }
  return { ...forwarded, body: Buffer.from(withContexts(body.toString())) }
}

/** A JSON text whose object, or each object of its list, has the @context. Other members stay as written. */
export function withContexts(text: string): string {
  const value = parsedJson(text)
  if (!isObject(value) && !isList(value)) return text
  const depthOfEntities = isList(value) ? 1 : 0
  const parts: string[] = []
  let depth = 0
  let from = 0
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === '{' && depth === depthOfEntities) {
      const isEmpty = /^\s*\}/.test(text.slice(index + 1, index + 1000))
      parts.push(text.slice(from, index + 1), contextMember, isEmpty ? '' : ',')
      from = index + 1
    }
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
  }
  return parts.join('') + text.slice(from)
}
