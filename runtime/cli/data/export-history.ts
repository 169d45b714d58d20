/**
 * Reads the history of entities for `selvedge export --history`: first the instances with observedAt, then
 * the others by modifiedAt. Both are read in consecutive parts; the next part starts at the end of the range
 * in the last response.
 */
import { GatewayError } from '#base/register/errors.ts'
import { type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'

/** Parts of the history of an entity, each a temporal entity; none if the entity has no history any more. */
export async function* evolutionOf(gateway: RunningGateway, id: string): AsyncGenerator<JsonObject> {
  yield* partsOf(gateway, id, { over: 'observedAt', query: `${always}&options=sysAttrs` })
  yield* partsOf(gateway, id, {
    over: 'modifiedAt',
    query: 'timeproperty=modifiedAt&options=unobserved,sysAttrs',
  })
}

const always = 'timerel=after&timeAt=0000-01-01T00:00:00Z'

interface Course {
  /** The member with the time of an instance. */
  readonly over: 'observedAt' | 'modifiedAt'
  readonly query: string
}

async function* partsOf(
  gateway: RunningGateway,
  id: string,
  { over, query }: Course,
): AsyncGenerator<JsonObject> {
  const path = `/ngsi-ld/v1/temporal/entities/${encodeURIComponent(id)}?${query}`
  let next = path
  let known: ReadonlySet<string> = new Set()
  while (true) {
    const answer = await gateway.request(next, { accept: 'application/ld+json' })
    // The entity was deleted meanwhile, or has no history.
    if (answer.status === 404) return
    if (answer.status !== 200 && answer.status !== 206) throw refusalOf(answer, `the history of ${id}`)
    const { part, instances, isEmpty } = withoutKnown(JSON.parse(answer.text) as JsonObject, known, over)
    if (!isEmpty) yield part
    if (answer.status === 200) return
    const end = /date-time .*?Z-(.*?)\//.exec(answer.headers.get('content-range') ?? '')?.[1]
    if (end === undefined || instances.size === 0)
      throw new GatewayError('peer.refused', `the partial history of ${id} does not state its end`)
    const following = new URL(next, 'http://localhost')
    following.searchParams.set('timerel', 'after')
    following.searchParams.set('timeAt', end)
    next = following.pathname + following.search
    known = new Set([...instances].filter(([, time]) => time === end).map(([instance]) => instance))
  }
}

/** The new instances of a response, which starts with the instant at which the last one ended. */
function withoutKnown(
  entity: JsonObject,
  known: ReadonlySet<string>,
  over: Course['over'],
): {
  readonly part: JsonObject
  readonly instances: ReadonlyMap<string, string>
  readonly isEmpty: boolean
} {
  const part: Record<string, JsonObject[string]> = {}
  const instances = new Map<string, string>()
  let isEmpty = true
  for (const [name, value] of Object.entries(entity)) {
    const list = listOf(value)
    if (!list.every(isObject) || name === '@context') {
      // The importing gateway sets its own creation and modification times.
      if (name !== 'createdAt' && name !== 'modifiedAt') part[name] = value
      continue
    }
    const fresh = list.filter(({ instanceId }) => !known.has(instanceId as string))
    for (const one of fresh) instances.set(one['instanceId'] as string, one[over] as string)
    // Scopes set without a time are exported with the unobserved instances.
    const isSet = (one: JsonObject): boolean =>
      over === 'observedAt' && name === 'scope' && one['observedAt'] === one['modifiedAt']
    const kept = fresh.filter((one) => !isSet(one))
    if (kept.length === 0) continue
    isEmpty = false
    // The importing gateway creates its own instance ids.
    part[name] = kept.map((one) => (over === 'observedAt' ? withoutTimes(one) : withoutId(one)))
  }
  return { part, instances, isEmpty }
}

/** Removes the id; a creation or deletion has one time only, and a marker that identifies it. */
function withoutId({ instanceId: _, createdAt: _created, ...instance }: JsonObject): JsonObject {
  const { modifiedAt, ...marker } = instance
  return instance['deletedAt'] === undefined || modifiedAt === undefined ? instance : marker
}

const withoutTimes = ({
  instanceId: _,
  createdAt: _created,
  modifiedAt: _modified,
  ...instance
}: JsonObject) => instance
