/** The OpenAPI description matches the served routes and parameters, in both directions. */
import { beforeAll, describe, expect, it } from 'vitest'
import { operations } from '#http/openapi/operations.ts'
import { parameters } from '#http/request/query-parameters.ts'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

interface Described {
  readonly operationId: string
  readonly parameters: readonly { name: string; in: string }[]
  readonly responses: Readonly<Record<string, object>>
}

const gateway = gatewayOfFile()
let paths: Readonly<Record<string, Readonly<Record<string, Described>>>> = {}
beforeAll(async () => {
  const document: { paths: typeof paths } = (await gateway.get('/openapi.json')).json()
  paths = document.paths
})

const all = Object.keys(operations).map((key) => key.split(' ') as [string, string])
const templated = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}')
const concrete = (path: string): string => path.replaceAll(/:\w+/g, 'urn:ngsi-ld:X:1')

it('shall be served as OpenAPI with every operation of the register', async () => {
  const reply = await gateway.get('/openapi.json')
  expect([reply.status, reply.headers['content-type']]).toEqual([200, 'application/json'])
  expect(reply.json()).toHaveProperty('openapi', '3.1.0')
  const served = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(served.toSorted()).toEqual(all.map(([method, path]) => `${method} ${templated(path)}`).toSorted())
  const ids = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})

it('shall have no dangling references', async () => {
  const { text } = await gateway.get('/openapi.json')
  const { components }: { components: { schemas: object } } = JSON.parse(text)
  const named = [...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name!)
  expect([...new Set(named)].filter((name) => !(name in components.schemas))).toEqual([])
})

it('shall have every route: a path allows exactly the methods that are described', async () => {
  for (const path of new Set(all.map(([, path]) => path))) {
    const { headers } = await gateway.ask('OPTIONS', concrete(path))
    const allowed = (headers['allow'] ?? '')
      .split(', ')
      .filter((method) => !['HEAD', 'OPTIONS'].includes(method))
    const described = Object.keys(paths[templated(path)]!).map((method) => method.toUpperCase())
    expect([path, allowed.toSorted()]).toEqual([path, described.toSorted()])
  }
})

describe('the described parameters are those accepted', () => {
  it.each(all.filter(([, path]) => path.startsWith('/ngsi-ld/')))('by %s %s', async (method, path) => {
    const reply = await gateway.ask(method, `${concrete(path)}?unheard-of=1`)
    const { detail }: { detail: string } = reply.json()
    expect(detail).toMatch(/^unknown query parameter unheard-of; known are/)
    const known = detail
      .split('known are ')[1]!
      .split(', ')
      .filter((name) => name !== '')
    const described = paths[templated(path)]![method.toLowerCase()]!.parameters
    const inQuery = described.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    expect(inQuery.toSorted()).toEqual(known.toSorted())
  })

  it('and every registered parameter is accepted by some route', () => {
    const used = new Set(Object.values(operations).flatMap((operation) => operation.parameters))
    expect(Object.keys(parameters).toSorted()).toEqual([...used].toSorted())
  })
})
