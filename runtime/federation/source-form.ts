/**
 * Converts a request to the form that a source requires (GS CIM 009, 4.3.6.6 to 4.3.6.8): its @context, its
 * media type, and its version of the standard. Requests to sources without such requirements are forwarded
 * unchanged.
 */
import type { Json } from '#contract'
import { type Context, coreContext } from '#ngsi-ld/context/context.ts'
import type { SourceOptions } from '#ngsi-ld/federation/source-info.ts'
import { translateBody, translatePath } from '#ngsi-ld/federation/translation.ts'
import { amendBody } from '#ngsi-ld/representation/amended-body.ts'
import { isList, isObject } from '#ngsi-ld/values/json.ts'

export interface SourceRequest {
  readonly method: string
  /** Path from /ngsi-ld/v1, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** The context of names in path and body: one, or one for each item of a list. */
  readonly contexts: readonly [Context, ...Context[]]
}

const json = 'application/json'
const ld = 'application/ld+json'

/** @param wantedContext the context that the source requires, if any. */
export function convertRequest(
  request: SourceRequest,
  options: SourceOptions,
  wantedContext: Context | undefined,
): SourceRequest {
  const body = request.body === undefined ? undefined : (JSON.parse(request.body) as Json)
  const target = wantedContext ?? (body === undefined ? undefined : contextToMove(request, options))
  const { minor } = options
  const amended = (whole: Json): Json => (minor === undefined ? whole : amendBody(request.path, whole, minor))
  if (target === undefined)
    return body === undefined || minor === undefined
      ? request
      : { ...request, body: JSON.stringify(amended(body)) }

  const translations = request.contexts.map((from) => ({ from, to: target }))
  const { link: _, 'content-type': __, ...headers } = request.headers
  const moved = {
    ...request,
    contexts: [target],
    path: translatePath(request.path, translations[0]!),
    headers: { ...headers, ...linkTo(options.jsonldContext ?? target.address) },
  } as const
  if (body === undefined) return moved
  const translated = amended(translateBody(request.path, body, translations))
  const items = isList(translated) ? translated : [translated]
  if (options.contentType !== ld || !items.every(isObject))
    return {
      ...moved,
      headers: { ...moved.headers, 'content-type': json },
      body: JSON.stringify(translated),
    }
  const context = options.jsonldContext ?? target.reference
  const within = items.map((item) => ({ ...item, '@context': context }))
  return {
    ...moved,
    headers: { ...headers, 'content-type': ld },
    body: JSON.stringify(isList(translated) ? within : within[0]),
  }
}

const linkTo = (address: string | undefined): { readonly link?: string } =>
  address === undefined
    ? {}
    : { link: `<${address}>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"` }

/**
 * The context to convert a body's names to, if the media type of the source changes where the context is
 * named. It is the context of the request, or the core context with full IRIs if no header can name it.
 */
function contextToMove(
  { contexts, headers }: SourceRequest,
  { contentType }: SourceOptions,
): Context | undefined {
  const isLd = headers['content-type'] === ld
  if (contentType === undefined || isLd === (contentType === ld)) return undefined
  const [first] = contexts
  const isOne = contexts.every((context) => context === first)
  return isOne && (contentType === ld || first.address !== undefined) ? first : coreContext
}
