/** Paths, methods and parameters of the routes of plugins. */
import { describe, expect, it } from 'vitest'
import { environment } from '#test/kit/plugins.ts'
import { createRouter, jsonBody, wholeNumber } from './route-table.ts'

const route = createRouter({
  '/': { GET: () => new Response('root') },
  '/items': { GET: () => new Response('all'), POST: async (one) => Response.json(await jsonBody(one)) },
  '/items/*': { GET: ({ segment }) => new Response(segment), DELETE: () => new Response(null) },
  '/sent': { POST: () => new Response('sent') },
})
const ask = async (method: string, path: string, body = ''): Promise<Response> =>
  route(new Request(`http://x${path}`, { method }), environment(body))

describe('a request', () => {
  it.each([
    ['GET', '/', 'root'],
    ['GET', '/items', 'all'],
    ['GET', '/items/', 'all'],
    ['HEAD', '/items', 'all'],
    ['GET', '/items/a%20b', 'a b'],
  ])('%s %s finds its route', async (method, path, text) => {
    expect(await (await ask(method, path)).text()).toBe(text)
  })

  it.each(['/other', '/items/a/b', '/toString'])('of %s finds none', async (path) => {
    await expect(ask('GET', path)).rejects.toMatchObject({ code: 'ngsi-ld.not-found' })
  })

  it('with another method gets the allowed ones, HEAD with GET', async () => {
    const allowed = { code: 'http.method-not-allowed', details: { allow: 'GET, DELETE, HEAD' } }
    await expect(ask('PUT', '/items/a')).rejects.toMatchObject(allowed)
    await expect(ask('GET', '/sent')).rejects.toMatchObject({ details: { allow: 'POST' } })
  })

  it('has a body of JSON', async () => {
    expect(await (await ask('POST', '/items', '{"a":1}')).json()).toEqual({ a: 1 })
    await expect(ask('POST', '/items', '{')).rejects.toMatchObject({ code: 'ngsi-ld.invalid-request' })
  })
})

it.each([
  ['n=1', 1],
  ['n=10', 10],
  ['', undefined],
])('the whole number of ?%s is %s', (query, expected) => {
  expect(wholeNumber(new URLSearchParams(query), { name: 'n', min: 1, max: 10 })).toBe(expected)
})

it.each(['n=0', 'n=11', 'n=1.5', 'n=x', 'n=-1', 'n='])('?%s is no whole number from 1 to 10', (query) => {
  expect(() => wholeNumber(new URLSearchParams(query), { name: 'n', min: 1, max: 10 })).toThrow(
    'must be a whole number from 1 to 10',
  )
})
