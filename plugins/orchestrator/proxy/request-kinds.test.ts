/** Which requests go to the ranking, to the broker, or to subscriptions. */
import { describe, expect, it } from 'vitest'
import { isWrite, kindOf } from './request-kinds.ts'

const entities = '/ngsi-ld/v1/entities'

describe('a request to the proxy', () => {
  it.each([
    ['GET', `${entities}?type=A&rankWeights%5Ba%5D=1`],
    ['GET', `${entities}/?rankWeights[a]=1`],
    ['HEAD', `${entities}?weights=%7B%22a%22%3A1%7D&type=A`],
    ['GET', `${entities}?type=A&rankWeights={"a":1}`],
  ])('%s %s goes to the ranking', (method, target) => expect(kindOf(method, target)).toBe('ranked'))

  it.each([
    ['GET', `${entities}?type=A`],
    ['GET', `${entities}?q=rankWeights%5Ba%5D==1`],
    ['GET', `${entities}/urn:x:1?rankWeights%5Ba%5D=1`],
    ['POST', `${entities}?rankWeights%5Ba%5D=1`],
    ['GET', '/ngsi-ld/v1/temporal/entities?weights=1'],
    ['GET', '/ngsi-ld/v1/subscriptionsOf'],
  ])('%s %s goes to the broker', (method, target) => expect(kindOf(method, target)).toBe('broker'))

  it.each([
    ['POST', '/ngsi-ld/v1/subscriptions'],
    ['GET', '/ngsi-ld/v1/subscriptions/?limit=1'],
    ['DELETE', '/ngsi-ld/v1/subscriptions/urn:x:1'],
  ])('%s %s is for subscriptions', (method, target) => expect(kindOf(method, target)).toBe('subscriptions'))
})

it.each([
  ['GET', entities, false],
  ['HEAD', entities, false],
  ['OPTIONS', entities, false],
  ['POST', '/ngsi-ld/v1/entityOperations/query?limit=1', false],
  ['POST', '/ngsi-ld/v1/temporal/entityOperations/query', false],
  ['POST', '/ngsi-ld/v1/entityOperations/upsert', true],
  ['PATCH', `${entities}/urn:x:1/attrs`, true],
])('%s %s writes: %s', (method, target, expected) => expect(isWrite(method, target)).toBe(expected))
