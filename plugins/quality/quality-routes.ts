/** HTTP routes of the quality analyser: its state, and the qualities of streams as JSON. */
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { qualityId } from '#plugins/quality/entities/quality-entity.ts'
import type { Quality } from '#plugins/quality/measures/quality.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import type { Stream } from '#plugins/quality/streams/stream.ts'

export interface QualityRoutesPorts {
  readonly streams: KnownStreams
  readonly quality: (stream: Stream) => Quality
  readonly status: () => object
}

export function createQualityRoutes({ streams, quality, status }: QualityRoutesPorts) {
  const rowOf = (stream: Stream) => {
    const { id, metadata, record } = stream
    return {
      id,
      qoi: qualityId(id),
      label: metadata.label,
      updateIntervalMs: metadata.intervalMs,
      observations: record.count,
      lastObservedAt: record.lastAt === undefined ? undefined : new Date(record.lastAt).toISOString(),
      quality: quality(stream),
    }
  }

  return (request: Request): Response => {
    const { pathname, searchParams } = new URL(request.url)
    const path = pathname.replace(/\/+$/, '')
    const [, encoded] = /^\/api\/streams\/([^/]+)$/.exec(path) ?? []
    const isKnown = path === '/status' || path === '/api/streams' || encoded !== undefined
    if (!isKnown) throw notFound(`no resource at ${path}`)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new GatewayError('http.method-not-allowed', `${request.method} is not allowed for this path`, {
        allow: 'GET, HEAD',
      })
    if (path === '/status') return Response.json(status())
    if (path === '/api/streams') {
      const { limit, offset } = pageOf(searchParams)
      const result = [...streams.all().drop(offset).take(limit).map(rowOf)]
      return Response.json({ count: streams.size(), result })
    }
    const stream = streams.get(decoded(encoded!))
    if (stream === undefined) throw notFound(`no resource at ${path}`)
    return Response.json(rowOf(stream))
  }
}

/** The page that a request asks for. @throws badRequestData for anything else than whole numbers. */
function pageOf(parameters: URLSearchParams): { readonly limit: number; readonly offset: number } {
  const max = limits.qualityPageStreams.value
  const offset = wholeNumber(parameters, { name: 'offset', min: 0, max: Number.MAX_SAFE_INTEGER })
  return { limit: wholeNumber(parameters, { name: 'limit', min: 1, max }) ?? max, offset: offset ?? 0 }
}

function wholeNumber(
  parameters: URLSearchParams,
  { name, min, max }: { readonly name: string; readonly min: number; readonly max: number },
): number | undefined {
  const text = parameters.get(name)
  if (text === null) return undefined
  const number = Number(text)
  if (/^\d{1,16}$/.test(text) && number >= min && number <= max) return number
  throw badRequestData(`must be a whole number from ${min} to ${max}`, name)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequestData('is not valid percent-encoding', 'id')
  }
}
