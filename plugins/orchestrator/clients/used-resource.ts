/** Names what a request uses: its path below `/ngsi-ld/v1/`, and the types of a query. Pure. */
import { limits } from '#base/limits/limits.ts'
import { partsOf } from '#ngsi-ld/values/request-target.ts'

/**
 * @param target path and query as written.
 * @param location of what the request created.
 */
export function resourceOf(target: string, location: string | null = null): string {
  const [path, query] = partsOf(location?.startsWith('/') === true ? location : target)
  const own = path.replace(/^\/ngsi-ld\/v1\//, '').replace(/\/+$/, '')
  const types = query.split('&').find((pair) => pair.startsWith('type='))
  const text = decoded(types === undefined ? own : `${own}?${types}`)
  const most = limits.orchestratorResourceCharacters.value
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
