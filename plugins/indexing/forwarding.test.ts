/**
 * What is handed on says names in full, in every parameter that has names: no context goes with it. What several brokers answer is
 * merged with all that they warn of, and counted only where it can be.
 */
import { afterEach, expect, it } from 'vitest'
import type { BrokerPort } from '#contract'
import { compilePlatformContext } from '#ngsi-ld/platform-context.ts'
import { restoreLimits, setLimit } from '#test/kit/ceilings.ts'
import { textWithDerived } from './deduced.ts'
import { askAll, askForOne, writtenOut } from './forwarding.ts'
import { wishOf } from './question.ts'

const context = compilePlatformContext('http://a.example/platform.jsonld')
const known = { isName: () => true, hasBare: () => false }
const qoi = 'https://w3id.org/iot/qoi#'

it.each([
  ['orderBy', 'qoi:completeness;desc,id', `${qoi}completeness;desc,id`],
  ['csf', 'qoi:completeness==1', `${qoi}completeness==1`],
  ['attrs', 'qoi:completeness, qoi:age', `${qoi}completeness,${qoi}age`],
  ['geometryProperty', 'qoi:place', `${qoi}place`],
  ['expandValues', 'qoi:a,qoi:b', `${qoi}a,${qoi}b`],
  ['options', 'sysAttrs,count', 'sysAttrs'],
  ['lang', 'de', 'de'],
])('%s=%s', (name, value, expected) => {
  const parameters = new Map([
    ['type', 'iot-stream:IotStream'],
    [name, value],
  ])
  const { question } = wishOf(parameters, context, known)
  const written = writtenOut(parameters, question, context.expand)
  expect(written.get(name)).toBe(expected)
  expect(written.get('type')).toBe('http://purl.org/iot/ontology/iot-stream#IotStream')
})

afterEach(restoreLimits)

/** A broker of so many entities, of one that warns. */
const brokerOf = (address: string, entities: number, warning?: string): BrokerPort => ({
  address,
  async exchange({ path }) {
    const { searchParams } = new URL(path, address)
    const [offset, limit] = ['offset', 'limit'].map((name) => Number(searchParams.get(name)))
    const all = Array.from({ length: entities }, (_, i) => ({ id: `${address}/${i}`, type: 'T' }))
    return {
      status: 200,
      headers: warning === undefined ? {} : { 'ngsild-warning': warning },
      text: JSON.stringify(all.slice(offset, offset! + limit!)),
    }
  },
})
const { signal } = new AbortController()
const ask = (brokers: readonly BrokerPort[], count: boolean) =>
  askAll(brokers, {
    ...{ parameters: new URLSearchParams('type=T'), headers: {}, signal },
    paging: { limit: 2, offset: 0, count },
  })

it('what each of several brokers warns of is told', async () => {
  const brokers = [
    brokerOf('http://a', 3, '111 a "one"'),
    brokerOf('http://b', 1),
    brokerOf('http://c', 1, '111 c "x"'),
  ]
  expect((await ask(brokers, true)).warnings).toEqual(['111 a "one"', '111 c "x"'])
  const { warnings } = await askForOne(brokers, '/ngsi-ld/v1/entities/x?offset=0&limit=1', {
    headers: {},
    signal,
  })
  expect(warnings).toEqual(['111 a "one"'])
})

it('more than can be counted is not counted', async () => {
  setLimit('indexForwardEntities', 3)
  const brokers = [brokerOf('http://a', 3), brokerOf('http://b', 2)]
  expect((await ask(brokers, true)).count).toBe('5')
  const more = [...brokers, brokerOf('http://c', 4)]
  await expect(ask(more, true)).rejects.toMatchObject({ code: 'ngsi-ld.too-many-results' })
  expect(JSON.parse((await ask(more, false)).text)).toHaveLength(2)
})

it('what is no JSON is passed on as it is', async () => {
  const text = '<html>hello</html>'
  expect(await textWithDerived(text, { deduce: () => new Map(), format: 'normalized' })).toBe(text)
})
