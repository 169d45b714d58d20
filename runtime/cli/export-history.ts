/**
 * The history of entities for `selvedge export --history`: the evolution of each entity over observedAt, in parts that follow
 * each other in time. A part ends where the gateway says that its answer ends, and the next begins there.
 */
import { GatewayError } from '#base/errors.ts'
import { isObject, type JsonObject, listOf } from '#ngsi-ld/json.ts'
import { type RunningGateway, refusalOf } from './running-gateway.ts'

/** Parts of the evolution of one entity, each a temporal entity; none when nothing of it was ever observed. */
export async function* evolutionOf(gateway: RunningGateway, id: string): AsyncGenerator<JsonObject> {
  const path = `/ngsi-ld/v1/temporal/entities/${encodeURIComponent(id)}`
  let after = ''
  let known: ReadonlySet<string> = new Set()
  while (true) {
    const answer = await gateway.ask(path + after, { accept: 'application/ld+json' })
    // It went meanwhile, or has no history.
    if (answer.status === 404) return
    if (answer.status !== 200 && answer.status !== 206) throw refusalOf(answer, `the history of ${id}`)
    const { part, instances } = withoutKnown(JSON.parse(answer.text) as JsonObject, known)
    if (instances.size > 0) yield part
    if (answer.status === 200) return
    const end = /date-time .*?Z-(.*?)\//.exec(answer.headers.get('content-range') ?? '')?.[1]
    if (end === undefined || instances.size === 0)
      throw new GatewayError('peer.refused', `the history of ${id} does not say where it goes on`)
    after = `?timerel=after&timeAt=${end}`
    known = new Set([...instances].filter(([, time]) => time === end).map(([instance]) => instance))
  }
}

/** What of an answer is new: the next one begins with the instant at which the one before ended. */
function withoutKnown(
  entity: JsonObject,
  known: ReadonlySet<string>,
): { readonly part: JsonObject; readonly instances: ReadonlyMap<string, string> } {
  const part: Record<string, JsonObject[string]> = {}
  const instances = new Map<string, string>()
  for (const [name, value] of Object.entries(entity)) {
    const list = listOf(value)
    if (!list.every(isObject) || name === '@context') {
      part[name] = value
      continue
    }
    const fresh = list.filter(({ instanceId }) => !known.has(instanceId as string))
    for (const { instanceId, observedAt } of fresh) instances.set(instanceId as string, observedAt as string)
    // The gateway that reads it gives instances ids of its own.
    if (fresh.length > 0) part[name] = fresh.map(({ instanceId: _, ...instance }) => instance)
  }
  return { part, instances }
}
