/** HTTP routes of the quality analyser: its state, and the qualities of streams as JSON. */
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

/** KnownStreams of one response. */
const pageMax = 1000

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
      const offset = Math.max(0, Number(searchParams.get('offset') ?? 0) || 0)
      const result = [...streams.all()].slice(offset, offset + pageMax).map(rowOf)
      return Response.json({ count: streams.size(), result })
    }
    const stream = streams.get(decoded(encoded!))
    if (stream === undefined) throw notFound(`no resource at ${path}`)
    return Response.json(rowOf(stream))
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw badRequestData('is not valid percent-encoding', 'id')
  }
}
