/** The language filter [NGSI-LD 4.15]: one text of a LanguageProperty, in the best matching language. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gatewayOfFile } from '#test/kit/gateway-of-file.ts'

const gateway = gatewayOfFile()
const path = '/ngsi-ld/v1/entities'
const id = 'urn:ngsi-ld:Street:1'
const languageMap = {
  en: 'Grand Place',
  fr: 'Grand-Place',
  'fr-CH': 'Grande Place',
  nl: ['Grote Markt', 'Markt'],
}

beforeAll(async () => {
  const sign = { type: 'LanguageProperty', languageMap: { '@none': 'GP', en: 'sign' } }
  const name = { type: 'LanguageProperty', languageMap, sign, observedAt: '2025-01-01T00:00:00Z' }
  await gateway.send('POST', path, { id, type: 'Street', name, lanes: { type: 'Property', value: 2 } })
})

const nameIn = async (lang: string, more = ''): Promise<unknown> => {
  const answer = await gateway.get(`${path}/${id}?pick=name&lang=${encodeURIComponent(lang)}${more}`)
  expect([lang, answer.status]).toEqual([lang, 200])
  return (answer.json() as { name: unknown }).name
}

describe('lang', () => {
  it.each([
    ['en', 'en'],
    ['EN', 'en'],
    ['fr-CH,fr', 'fr-CH'],
    ['fr-BE', 'fr'],
    ['fr-CH,fr;q=0.9,en;q=0.8,*;q=0.5', 'fr-CH'],
    ['de,en;q=0.5,fr;q=0.8', 'fr'],
    ['nl-BE;q=0.2,en;q=0.1', 'nl'],
    ['en;q=0,fr;q=0.1', 'fr'],
    // Any existing language.
    ['*', 'en'],
    ['de', 'en'],
  ])('%s shall be answered in %s', async (lang, language) => {
    expect(await nameIn(lang)).toMatchObject({
      type: 'Property',
      value: languageMap[language as keyof typeof languageMap],
      lang: language,
    })
  })

  it('shall keep members other than the text, and reduce sub-attributes, too', async () => {
    expect(await nameIn('fr')).toEqual({
      type: 'Property',
      value: 'Grand-Place',
      lang: 'fr',
      observedAt: '2025-01-01T00:00:00Z',
      sign: { type: 'Property', value: 'GP', lang: '@none' },
    })
    expect(await nameIn('en', '&options=concise')).toMatchObject({ value: 'Grand Place', lang: 'en' })
    expect(await nameIn('en', '&options=keyValues')).toBe('Grand Place')
  })

  it('shall apply to queries, by GET and by POST, and to histories', async () => {
    const expected = [{ id, name: { type: 'Property', value: 'Grand-Place', lang: 'fr' } }]
    expect((await gateway.get(`${path}?type=Street&lang=fr&pick=id,name`)).json()).toMatchObject(expected)
    const body = { type: 'Query', entities: [{ type: 'Street' }], lang: 'fr', pick: ['id', 'name'] }
    expect((await gateway.send('POST', '/ngsi-ld/v1/entityOperations/query', body)).json()).toMatchObject(
      expected,
    )
    const past = (await gateway.get(`/ngsi-ld/v1/temporal/entities/${id}?attrs=name&lang=fr`)).json()
    expect(past).toMatchObject({ name: [{ type: 'Property', value: 'Grand-Place', lang: 'fr' }] })
  })

  it.each(['', 'e n', 'en;q=2', 'en;q=high', 'en,,fr'])('%j shall be 400', async (lang) => {
    expect((await gateway.get(`${path}?type=Street&lang=${encodeURIComponent(lang)}`)).status).toBe(400)
  })
})
