/** What is handed on says names in full, in every parameter that has names: no context goes with it. */
import { expect, it } from 'vitest'
import { compilePlatformContext } from '#ngsi-ld/platform-context.ts'
import { writtenOut } from './forwarding.ts'
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
