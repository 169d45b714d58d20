/**
 * The history of entities for `selvedge export --history`: the evolution of each entity over observedAt, then what was not
 * observed over the times when it was written, each in parts that follow each other in time. A part ends where the
 * gateway says that its answer ends, and the next begins there.
 */
import { GatewayError } from '#base/register/errors.ts'
import { type RunningGateway, refusalOf } from '#cli/gateway/running-gateway.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/values/json.ts'

/** Parts of the evolution of one entity, each a temporal entity; none when there is nothing left of it. */
export async function* evolutionOf(gateway: RunningGateway, id: string): AsyncGenerator<JsonObject> {
  yield* partsOf(gateway, id, { over: 'observedAt', query: `${always}&options=sysAttrs` })
  yield* partsOf(gateway, id, {
    over: 'modifiedAt',
    query: 'timeproperty=modifiedAt&options=unobserved,sysAttrs',
  })
}

const always = 'timerel=after&timeAt=0000-01-01T00:00:00Z'

interface Course {
  /** The member that says of which time an instance is. */
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
    const answer = await gateway.ask(next, { accept: 'application/ld+json' })
    // It went meanwhile, or has no history.
    if (answer.status === 404) return
    if (answer.status !== 200 && answer.status !== 206) throw refusalOf(answer, `the history of ${id}`)
    const { part, instances, isEmpty } = withoutKnown(JSON.parse(answer.text) as JsonObject, known, over)
    if (!isEmpty) yield part
    if (answer.status === 200) return
    const end = /date-time .*?Z-(.*?)\//.exec(answer.headers.get('content-range') ?? '')?.[1]
    if (end === undefined || instances.size === 0)
      throw new GatewayError('peer.refused', `the history of ${id} does not say where it goes on`)
    const going = new URL(next, 'http://localhost')
    going.searchParams.set('timerel', 'after')
    going.searchParams.set('timeAt', end)
    next = going.pathname + going.search
    known = new Set([...instances].filter(([, time]) => time === end).map(([instance]) => instance))
  }
}

/** What of an answer is new: the next one begins with the instant at which the one before ended. */
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
      // When an entity came into being and was changed last is for the gateway to say that it is in.
      if (name !== 'createdAt' && name !== 'modifiedAt') part[name] = value
      continue
    }
    const fresh = list.filter(({ instanceId }) => !known.has(instanceId as string))
    for (const one of fresh) instances.set(one['instanceId'] as string, one[over] as string)
    // Scopes that were set without a time are exported with what was not observed.
    const isSet = (one: JsonObject): boolean =>
      over === 'observedAt' && name === 'scope' && one['observedAt'] === one['modifiedAt']
    const kept = fresh.filter((one) => !isSet(one))
    if (kept.length === 0) continue
    isEmpty = false
    // The gateway that reads it gives instances ids of its own.
    part[name] = kept.map((one) => (over === 'observedAt' ? withoutTimes(one) : withoutId(one)))
  }
  return { part, instances, isEmpty }
}

/** One that was created or deleted has one time only, and a marker says which. */
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
