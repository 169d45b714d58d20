/** Reads a broker's entities of some types, page by page. */
import { httpClient } from '#test/kit/http-gateway.ts'

type Json = Record<string, unknown>

const api = '/ngsi-ld/v1'
const page = 1000

/** Entities of some types, by id. */
export async function entitiesOf(url: string, types: readonly string[]): Promise<Map<string, Json>> {
  const found = new Map<string, Json>()
  for (const type of types) {
    for (let offset = 0; ; offset += page) {
      const path = `${api}/entities?type=${encodeURIComponent(type)}&limit=${page}&offset=${offset}`
      const reply = await httpClient(url).get(path)
      if (reply.status !== 200) throw new TypeError(`${path} was answered ${reply.status}: ${reply.text}`)
      const all = reply.json() as readonly Json[]
      for (const one of all) found.set(one['id'] as string, one)
      if (all.length < page) break
    }
  }
  return found
}
