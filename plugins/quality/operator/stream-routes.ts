/** HTTP routes of streams: their current quality, what describes them, and their rated values over time. */
import { limits } from '#base/limits/limits.ts'
import { type RouteTable, wholeNumber } from '#client/routes/route-table.ts'
import type { BrokerPort } from '#contract'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { qualityId } from '#plugins/quality/entities/quality-entity.ts'
import type { Quality } from '#plugins/quality/measures/quality.ts'
import type { KnownStreams } from '#plugins/quality/streams/known-streams.ts'
import { describedBy, type Stream } from '#plugins/quality/streams/stream.ts'
import { ratedHistory } from './rated-history.ts'

export interface StreamRoutePorts {
  readonly streams: KnownStreams
  readonly quality: (stream: Stream) => Quality
  /** The broker that holds the QoI entities. */
  readonly broker: BrokerPort
}

export function createStreamRoutes({ streams, quality, broker }: StreamRoutePorts): RouteTable {
  const rowOf = (stream: Stream) => {
    const { id, metadata, record } = stream
    const { label, intervalMs, range, place, isInferred } = metadata
    return {
      id,
      qoi: qualityId(id),
      label,
      updateIntervalMs: intervalMs,
      range,
      place,
      isInferred,
      describedBy: describedBy(stream),
      observations: record.count,
      lastObservedAt: record.lastAt === undefined ? undefined : new Date(record.lastAt).toISOString(),
      quality: quality(stream),
    }
  }
  const streamOf = (id: string): Stream => {
    const stream = streams.get(id)
    if (stream === undefined) throw notFound(`no stream ${id} is known`)
    return stream
  }

  return {
    '/api/streams': {
      GET({ parameters }) {
        const { limit, offset, text } = pageOf(parameters)
        const found = text === '' ? streams.all() : streams.all().filter((stream) => contains(stream, text))
        const result = [...found.drop(offset).take(limit).map(rowOf)]
        return Response.json({ count: streams.size(), result })
      },
    },
    '/api/streams/*': { GET: ({ segment }) => Response.json(rowOf(streamOf(segment))) },
    '/api/histories/*': {
      async GET({ segment, environment }) {
        return Response.json(await ratedHistory(broker, streamOf(segment).id, environment.signal))
      },
    },
  }
}

/** The page that a request asks for. @throws badRequestData for wrong numbers. */
function pageOf(parameters: URLSearchParams) {
  const max = limits.qualityPageStreams.value
  const offset = wholeNumber(parameters, { name: 'offset', min: 0, max: Number.MAX_SAFE_INTEGER })
  return {
    limit: wholeNumber(parameters, { name: 'limit', min: 1, max }) ?? max,
    offset: offset ?? 0,
    text: (parameters.get('text') ?? '').toLowerCase(),
  }
}

const contains = ({ id, metadata }: Stream, text: string): boolean =>
  id.toLowerCase().includes(text) || metadata.label?.includes(text) === true
