/**
 * Violated rules between settings are reported together with invalid values, and only if they are certain.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { loadSettings } from '#config/load/load.ts'

const folder = mkdtempSync(join(tmpdir(), 'selvedge-relations-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function mistakesOf(yaml: string): Promise<string[]> {
  const file = join(folder, 'selvedge.yaml')
  writeFileSync(file, yaml)
  const bridgeChecks = {
    json: (given: unknown) =>
      (given as []).length === 0 ? [] : [{ path: '[0].topic', expected: 'a pattern' }],
  }
  const patternCheck = (regexp: string) => (regexp === '(' ? 'missing )' : undefined)
  const { mistakes = [] } = await loadSettings({ file, env: {}, folder, bridgeChecks, patternCheck })
  return mistakes.map(({ path }) => path)
}

const wrongRange = 'devices: {"0012": {location: [1, 2, 3, 4], fields: {t: {min: 3, max: 1}}}}'

it('reports violated rules together with invalid values', async () => {
  const yaml = `
    comit: {}
    commit: {lingerMs: -1}
    http: {port: 9000}
    mqtt: {port: 9000}
    bridgeIn: [{url: "http://x", topics: []}]
    bridges: {json: [{topic: 1}]}
    provisioning: {${wrongRange}, allow: [a, 5], mode: Auto}`
  expect((await mistakesOf(yaml)).toSorted()).toEqual(
    [
      'comit',
      'commit.lingerMs',
      'mqtt.port',
      'bridgeIn[0].url',
      'bridgeIn[0].topics',
      'bridges.json[0].topic',
      'provisioning.devices.0012.location',
      'provisioning.devices.0012.fields.t.max',
      'provisioning.allow[1]',
      'provisioning.mode',
    ].toSorted(),
  )
})

it.each([
  ['http: {port: web}\nmqtt: {port: 9090}', ['http.port']],
  ['http: 3\nmqtt: {port: 9090}', ['http']],
  ['- a list', ['']],
])('reports no rule that depends on an invalid value: %j', async (yaml, paths) => {
  expect(await mistakesOf(yaml)).toEqual(paths)
})

it.each([
  ['co2: {min: 3, max: 1}', ['quality.usualProperties.co2.max']],
  ['"wind speed": {max: fast}', ['quality.usualProperties["wind speed"].max']],
  ['state: {min: 0, regexp: "on|off"}', ['quality.usualProperties.state.regexp']],
  ['state: {regexp: "("}', ['quality.usualProperties.state.regexp']],
  ['state: {maximum: 3}', ['quality.usualProperties.state.maximum']],
  ['co2: {min: 0, max: 9000}\n    humidity: ~', []],
])('reports the key of a wrong usual property: %j', async (yaml, paths) => {
  expect(await mistakesOf(`quality:\n  usualProperties:\n    ${yaml}`)).toEqual(paths)
})

it.each([
  ['indexing: {enabled: false}', ['ranking.backend']],
  ['indexing: {enabled: false}\nranking: {enabled: false}', []],
  ['indexing: {enabled: false}\nranking: {backend: mdr}\nsearch: {backend: indexing}', ['search.backend']],
  ['ranking: {enabled: false}\nsearch: {backend: ranking}', ['search.backend']],
  ['history: {rollUpDays: 10}', ['history.rollUpDays']],
  ['history: {rollUpDays: 10, maxAgeDays: 10}', ['history.rollUpDays']],
  ['history: {rollUpDays: 10, maxAgeDays: 9}', []],
])('requires enabled backends, and roll-ups kept longer than the history: %s', async (yaml, paths) => {
  expect(await mistakesOf(yaml)).toEqual(paths)
})

it.each([
  ['{url: mqtts://b, username: me, passwordFile: f, caFile: c}, {url: "amqp://b/"}', []],
  ['{url: mqtt://b, passwordFile: f}', ['[0].username']],
  ['{url: amqp://b, caFile: c}, {url: amqp://b}', ['[0].url', '[1].url']],
  ['{url: http://b, username: me}, {url: mqtt://b, tokenFile: f}', ['[0].username', '[1].tokenFile']],
  ['{url: ws://b}, {url: mqtt://me@b}, {url: amqp://b/site}', ['[0].url', '[1].url', '[2].url']],
])('requires sources of streams with complete credentials: %s', async (hosts, paths) => {
  const found = await mistakesOf(`quality: {sources: {hosts: [${hosts}]}}`)
  expect(found).toEqual(paths.map((path) => `quality.sources.hosts${path}`))
})

const site = 'url: "http://c", types: [A]'

it.each([
  [`register: [{${site}, endpoint: "http://me"}]`, []],
  [`register: [{${site}}]`, ['register[0].endpoint']],
  [`register: [{${site}}]\nhttp: {publicUrl: "http://me"}`, []],
  [`register: [{${site}, tunnel: true}]`, ['register[0].tunnel']],
  [`register: [{${site}, tunnel: true}]\ntunnels: [{url: "http://c/ngsi-ld/v1/"}]`, []],
  [
    `register: [{${site}, tunnel: true, endpoint: "http://me"}]\ntunnels: [{url: "http://c"}]`,
    ['register[0].endpoint'],
  ],
  [`register: [{${site}, endpoint: "http://me"}, {${site}, endpoint: "http://me"}]`, ['register[1].name']],
  [
    `register: [{${site}, endpoint: "http://me", mode: exclusive}]`,
    ['register[0].ids', 'register[0].properties'],
  ],
  [
    `register: [{${site}, endpoint: "http://me", expirySeconds: 10, refreshSeconds: 10}]`,
    ['register[0].refreshSeconds'],
  ],
  ['tunnels: [{url: "http://c"}, {url: "http://c/"}]', ['tunnels[1].url']],
  ['tunnels: [{url: "http://c", allow: [fly]}]', ['tunnels[0].allow[0]']],
  [`copies: [{name: a, ${site}}, {name: a, ${site}}]`, ['copies[1].name']],
  [`copies: [{name: a, ${site}, ids: ["urn:a"], idPattern: b}]`, ['copies[0].idPattern']],
  ['copies: [{name: a, types: [A], url: "http://user:secret@c"}]', ['copies[0].url']],
])('checks rules between registrations, tunnels and copies: %s', async (yaml, paths) => {
  expect(await mistakesOf(yaml)).toEqual(paths)
})

it('warns of tokens that are sent unencrypted', async () => {
  const file = join(folder, 'selvedge.yaml')
  writeFileSync(
    file,
    'tunnels: [{url: "http://c", tokenFile: t}, {url: "https://d", tokenFile: t}, {url: "http://127.0.0.1", tokenFile: t}]',
  )
  expect(await loadSettings({ file, env: {}, folder })).toMatchObject({
    warnings: ['tunnels[0] sends its token unencrypted; use https'],
  })
})
