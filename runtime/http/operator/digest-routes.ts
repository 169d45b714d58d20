/**
 * Digests of a tenant's entities, for gateways that compare what they sent with what is stored here. These
 * routes are not part of NGSI-LD; a client that may read entities may read them.
 */
import { limits } from '#base/limits/limits.ts'
import type { Chosen, HistoryDigests } from '#broker/tenant/digests.ts'
import type { HttpContext } from '#http/request/body.ts'
import type { ApiRequest, RequestReader } from '#http/request/request.ts'
import type { Answers } from '#http/request/response.ts'
import { bucketCount, fromIdList } from '#ngsi-ld/federation/digest.ts'
import { chainOf } from '#ngsi-ld/federation/via.ts'
import { matchesType, parseTypeSelection } from '#ngsi-ld/query/entity-selector.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export const digestsPath = '/selvedge/v1/digests'

const known: ReadonlySet<string> = new Set([
  'type',
  'through',
  'bucket',
  'id',
  'from',
  'to',
  'position',
  'others',
])

export function createDigestRoutes({
  requests,
  answers,
}: {
  readonly requests: RequestReader
  readonly answers: Answers
}) {
  return Object.freeze({
    async retrieve(c: HttpContext): Promise<Response> {
      const request = await requests.read(c, known)
      const { digests } = request.broker
      const position = digests.position()
      const [ids, bucket] = [request.parameters.get('id'), numberOf(request, 'bucket', bucketCount - 1)]
      if (request.parameters.has('position'))
        return answers.data(request, { position, restoredAt: digests.restoredAt, ...collisionsOf(request) })
      const others = request.parameters.get('others')
      if (others !== undefined)
        return answers.data(request, { position, others: othersOf(request, fromIdList(others)) })
      if (ids !== undefined) {
        if (bucket !== undefined) throw invalidRequest('id and bucket exclude each other')
        return answers.data(request, { position, histories: await historiesOf(request, fromIdList(ids)) })
      }
      if (bucket === undefined)
        return answers.data(request, { position, buckets: await digests.buckets(chosenBy(request)) })
      const entities = Object.fromEntries(await digests.bucket(bucket, chosenBy(request)))
      return answers.data(request, { position, entities })
    },
  })
}

/** Other writers of the same attributes as the requesting gateway. */
function collisionsOf({ broker, parameters }: ApiRequest): object {
  const through = parameters.get('through')
  return through === undefined ? {} : { collisions: broker.digests.collisions(through) }
}

/** Per entity, the attribute instances whose last writer is not the requesting gateway. */
function othersOf(
  { broker, parameters }: ApiRequest,
  ids: readonly string[],
): Record<string, readonly string[]> {
  const through = parameters.get('through')
  if (through === undefined) throw badRequestData('is required with others', 'through')
  assertFew(ids, 'others')
  return Object.fromEntries(ids.map((id) => [id, broker.digests.others(id, through)]))
}

function assertFew(ids: readonly string[], parameter: string): void {
  if (ids.length > limits.digestIdsMax.value)
    throw badRequestData(`names at most ${limits.digestIdsMax.value} entities`, parameter)
}

async function historiesOf(
  request: ApiRequest,
  ids: readonly string[],
): Promise<Record<string, HistoryDigests>> {
  assertFew(ids, 'id')
  const from = numberOf(request, 'from') ?? Number.MIN_SAFE_INTEGER
  const to = numberOf(request, 'to') ?? Number.MAX_SAFE_INTEGER
  const histories: Record<string, HistoryDigests> = {}
  for (const id of ids) histories[id] = await request.broker.digests.history(id, { from, to })
  return histories
}

/** Selects entities by type and by the gateway that sent them. */
function chosenBy({ parameters, context }: ApiRequest): Chosen {
  const type = parameters.get('type')
  const through = parameters.get('through')
  const selection = type === undefined ? undefined : parseTypeSelection(type, context.expand)
  return (view) =>
    (through === undefined || chainOf(view.times().attributes['']?.[2]).includes(through)) &&
    (selection === undefined || matchesType(selection, view.entity().type))
}

/** @throws ngsi-ld.bad-request-data */
function numberOf(
  { parameters }: ApiRequest,
  name: string,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const number = Number(text)
  if (!/^-?\d{1,16}$/.test(text) || number > most || (name === 'bucket' && number < 0))
    throw badRequestData(name === 'bucket' ? `is a number from 0 to ${most}` : 'is a number of ms', name)
  return number
}
