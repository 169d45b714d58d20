/** Which values are secrets, how responses show them, and when a placeholder keeps the stored value. */
import { describe, expect, it } from 'vitest'
import { assertSecretsStay, hidden, shownAddress, shownPairs, withStoredSecrets } from './secrets.ts'

const fields = { uri: 'uri', pairs: 'receiverInfo' }

describe('an address', () => {
  it.each([
    ['http://a:b@h/p', 'http://***@h/p'],
    ['mqtts://user@h:8883/t', 'mqtts://***@h:8883/t'],
    ['http://a@b:c@h/p', 'http://***@h/p'],
    ['http:///a:b@h/p', 'http:///***@h/p'],
    ['HTTP:\\\\a:b@h/p', 'HTTP:\\\\***@h/p'],
    ['http://h/p?x=1&access_token=s3&y=2#z', 'http://h/p?x=1&access_token=***&y=2#z'],
    ['http://h/p?API-KEY=s3', 'http://h/p?API-KEY=***'],
    ['http://h/p?auth=s3&author=me&sessionId=s3', 'http://h/p?auth=***&author=me&sessionId=***'],
  ])('with secrets is shown without them: %s', (uri, shown) => {
    expect(shownAddress(uri)).toBe(shown)
    expect(shownAddress(shown)).toBe(shown)
  })

  it.each(['http://h/p', 'http://h/a@b', 'http://h/?to=a@b', 'http://h?x=y', 'urn:selvedge:stream', ''])(
    'without secrets is shown as it is: %s',
    (uri) => expect(shownAddress(uri)).toBe(uri),
  )
})

it('headers that carry credentials are shown as set, all others with their values', () => {
  const secret = [
    'Authorization',
    'proxy-authorization',
    'Cookie',
    'X-Auth-Token',
    'Fiware-Api-Key',
    'MyPassword',
    ...[
      'X-Auth',
      'auth',
      'x_auth',
      'XAuth',
      'userAuth',
      'OAuth2',
      'pwd',
      'X-Pwd',
      'db-pwd',
      'X-Session',
      'sessionId',
    ],
    ...['JSESSIONID', 'PHPSESSID', 'sid', 'jwt', 'X-JWT-Assertion', 'Bearer', 'x-bearer'],
  ]
  const values = (keys: readonly string[], value: string) =>
    shownPairs(keys.map((key) => ({ key, value })))!.map((pair) => pair.value)
  expect(values(secret, 's3')).toEqual(secret.map(() => hidden))
  const credentials = [
    ...[
      'Bearer s3',
      'Token abc',
      'token abc',
      'ApiKey abc',
      'Api-Key abc',
      'Basic YTpi',
      'Digest username="a"',
    ],
    ...['Negotiate YII', 'NTLM TlR', 'DPoP abc', 'JWT abc', 'OAuth a="b"', 'AWS4-HMAC-SHA256 Credential=A'],
    ...['SharedAccessSignature sr=a', 'Token=abc', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln'],
  ]
  for (const value of credentials) expect([value, ...values(['X-Plant'], value)]).toEqual([value, hidden])
  const ordinary = [
    ...[
      'X-Plant',
      'Prefer',
      'NGSILD-Tenant',
      'jsonldContext',
      'X-Author',
      'X-Authority',
      'Accept',
      'User-Agent',
    ],
    ...[
      'Accept-Language',
      'X-Obsession',
      'X-Side',
      'X-Passenger',
      'X-Bypass-Cache',
      'X-Design',
      'Content-Language',
    ],
  ]
  expect(values(ordinary, 'north')).toEqual(ordinary.map(() => 'north'))
  for (const value of ['tokens of love', 'basics', 'en', '1.6', 'application/json', 'http://h/c.jsonld'])
    expect(values(['X-Plant'], value)).toEqual([value])
  expect(values(['Authorization'], 'urn:ngsi-ld:request')).toEqual(['urn:ngsi-ld:request'])
})

describe('a placeholder', () => {
  const stored = {
    uri: 'http://a:b@h/p?token=t',
    pairs: [
      { key: 'Cookie', value: 'one' },
      { key: 'cookie', value: 'two' },
      { key: 'X-Plant', value: 'north' },
    ],
  }
  const sentBack = { uri: shownAddress(stored.uri), pairs: shownPairs(stored.pairs) }

  it('keeps the stored value', () => {
    expect(withStoredSecrets(sentBack, stored, fields)).toEqual(stored)
    const other = { uri: 'http://x:y@h/other', pairs: [{ key: 'COOKIE', value: hidden }] }
    expect(withStoredSecrets(other, stored, fields)).toEqual({
      ...other,
      pairs: [{ key: 'COOKIE', value: 'one' }],
    })
  })

  it('is rejected if nothing is stored, or at another address', () => {
    const cookie = [{ key: 'Cookie', value: hidden }]
    const refused: [typeof sentBack, typeof stored | undefined][] = [
      [sentBack, undefined],
      [{ uri: 'http://h/', pairs: cookie }, undefined],
      [{ uri: 'http://h/', pairs: [{ key: 'X-Token', value: hidden }] }, stored],
      [{ uri: 'http://evil/', pairs: cookie }, stored],
      [{ uri: 'https://h/', pairs: cookie }, stored],
      [{ uri: 'http://h:81/', pairs: cookie }, stored],
      [{ uri: 'http://***@evil/', pairs: [] }, stored],
      [{ uri: 'http://h/', pairs: [...sentBack.pairs!, ...cookie] }, stored],
    ]
    for (const [given, before] of refused)
      expect(() => withStoredSecrets(given, before, fields)).toThrow('stands for a secret')
    expect(() => assertSecretsStay(stored, { uri: 'http://evil/' }, 'endpoint')).toThrow('send them again')
    expect(assertSecretsStay(stored, { uri: 'http://h/q' }, 'endpoint')).toBeUndefined()
  })

  it('means nothing in a header that carries no secret', () => {
    const plain = { uri: 'http://h/***', pairs: [{ key: 'X-Stars', value: hidden }] }
    expect(withStoredSecrets(plain, undefined, fields)).toEqual(plain)
  })
})
