/**
 * Invalid settings: one row per kind of mistake, with the exact mistakes reported.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ambiguousVariables } from '#config/checks/foreign-names.ts'
import { loadSettings } from '#config/load/load.ts'
import {
  createSettingsFolder,
  expectMistakes,
  type GivenSettings,
  type MistakeRow,
} from '#test/kit/settings-folder.ts'
import { mistakeLine } from './mistakes.ts'

const { folder, load, lastFile, settingsOf } = createSettingsFolder()

const port = 'a port from 1 to 65535, 0 for any free one, or off'
const httpNames = 'one of port, tokenFile, allowedHosts, publicUrl, defaultMediaType'
const place = '[longitude, latitude] in degrees, or a GeoJSON Point'
const text = (most: number): string => `text of 1 to ${most} characters, in quotes if it looks like a number`
const broker = 'mqtt://host[:port] or mqtts://host[:port], without user name and password'
const filter = 'an MQTT topic filter such as site/+/temperature or site/#'
const filters = 'a list of 1 to 256 topic filters'
const top = /^one of data, host, http, mqtt, commit, /
const device = (text: string): string => `provisioning: {devices: {d: ${text}}}`
const bridge = (text: string): string => `bridgeIn: [{url: mqtt://b, topics: [a], ${text}}]`

const broken: [title: string, given: GivenSettings, mistakes: MistakeRow[]][] = [
  ['an unknown section', { yaml: 'htpp: {port: 1}' }, [['htpp', '{"port":1}', top, 'http']]],
  ['an unknown key', { yaml: 'http: {prot: 1}' }, [['http.prot', '1', httpNames, 'http.port']]],
  [
    'another spelling',
    { yaml: 'commit: {linger_ms: 3}' },
    [['commit.linger_ms', '3', 'one of lingerMs, synchronous', 'commit.lingerMs']],
  ],
  ['a key at the wrong place', { yaml: 'lingerMs: 3' }, [['lingerMs', '3', top, 'commit.lingerMs']]],
  ['a path as a key', { yaml: 'http-port: 3' }, [['http-port', '3', top, 'http.port']]],
  ['a key without a similar one', { yaml: 'xyzzy: 3' }, [['xyzzy', '3', top]]],
  ['a section that is a value', { yaml: 'http: 9090' }, [['http', '9090', 'a group of settings']]],
  ['a section that is a list', { yaml: 'mqtt: [1]' }, [['mqtt', '[1]', 'a group of settings']]],
  ['a file that is a list', { yaml: '- a' }, [['', '["a"]', 'a group of settings']]],
  ['a file that is text', { yaml: 'hello' }, [['', '"hello"', 'a group of settings']]],
  ['text for a port', { yaml: 'http: {port: web}' }, [['http.port', '"web"', port]]],
  ['a port too high', { yaml: 'http: {port: 65536}' }, [['http.port', '65536', port]]],
  ['a port below zero', { yaml: 'mqtt: {port: -1}' }, [['mqtt.port', '-1', port]]],
  ['half a port', { yaml: 'mqtt: {port: 1883.5}' }, [['mqtt.port', '1883.5', port]]],
  ['a port in quotes', { yaml: 'mqtt: {port: "1883"}' }, [['mqtt.port', '"1883"', port]]],
  [
    'a host with scheme',
    { yaml: 'host: "http://x"' },
    [['host', '"http://x"', 'a host name or address without scheme and port']],
  ],
  [
    'a host with port',
    { yaml: 'host: "x:80"' },
    [['host', '"x:80"', 'a host name or address without scheme and port']],
  ],
  ['an empty host', { yaml: 'host: ""' }, [['host', '""', 'a host name or address without scheme and port']]],
  ['a number for a folder', { yaml: 'data: 5' }, [['data', '5', 'the name of a file']]],
  ['a folder with NUL', { json: '{"data":"a\\u0000b"}' }, [['data', '"a\\u0000b"', 'the name of a file']]],
  [
    'a linger too long',
    { yaml: 'commit: {lingerMs: 2001}' },
    [['commit.lingerMs', '2001', 'a whole number from 0 to 2000 ms']],
  ],
  [
    'a linger with unit',
    { yaml: 'commit: {lingerMs: 20ms}' },
    [['commit.lingerMs', '"20ms"', 'a whole number from 0 to 2000 ms']],
  ],
  [
    'an unknown durability',
    { yaml: 'commit: {synchronous: OFF}' },
    [['commit.synchronous', '"OFF"', 'one of FULL, NORMAL']],
  ],
  [
    'an unknown profile',
    { yaml: 'conformance: {profile: 1.7}' },
    [['conformance.profile', '1.7', 'one of 1.9, 1.8, 1.1.2, platform']],
  ],
  [
    'an unknown mode',
    { yaml: 'provisioning: {mode: open}' },
    [['provisioning.mode', '"open"', 'one of auto, quarantine, allow-list']],
  ],
  [
    'yes for true',
    { yaml: 'provisioning: {shareObservableProperty: yes}' },
    [['provisioning.shareObservableProperty', '"yes"', 'true or false']],
  ],
  [
    'a number as device id',
    { yaml: 'provisioning: {allow: [0012]}' },
    [['provisioning.allow[0]', '12', text(1024)]],
  ],
  [
    'one device for a list',
    { yaml: 'provisioning: {ignore: d}' },
    [['provisioning.ignore', '"d"', 'a list of at most 50000 device ids']],
  ],
  [
    'an unknown media type',
    { yaml: 'http: {defaultMediaType: text/html}' },
    [['http.defaultMediaType', '"text/html"', 'one of application/json, application/ld+json']],
  ],
  [
    'too many clients',
    { yaml: 'mqtt: {maxClients: 2001}' },
    [['mqtt.maxClients', '2001', 'a whole number from 1 to 2000 clients']],
  ],
  [
    'an unknown level',
    { yaml: 'log: {level: verbose}' },
    [['log.level', '"verbose"', 'one of debug, info, warn, error']],
  ],
  [
    'a history too small',
    { yaml: 'history: {maxBytes: 1000}' },
    [['history.maxBytes', '1000', /^a whole number from 1048576 to \d+ bytes$/]],
  ],
  [
    'an age of zero',
    { yaml: 'history: {maxAgeDays: 0}' },
    [['history.maxAgeDays', '0', 'a whole number from 1 to 36500 days']],
  ],
  [
    'latitude first',
    { yaml: device('{location: [52, 113]}') },
    [['provisioning.devices.d.location', '[52,113]', place]],
  ],
  [
    'half a place',
    { yaml: device('{location: [52]}') },
    [['provisioning.devices.d.location', '[52]', place]],
  ],
  [
    'a place name for coordinates',
    { yaml: device('{location: Berlin}') },
    [['provisioning.devices.d.location', '"Berlin"', place]],
  ],
  [
    'a line for a place',
    { yaml: device('{location: {type: LineString, coordinates: [1, 2]}}') },
    [['provisioning.devices.d.location', '{"type":"LineString","coordinates":[1,2]}', place]],
  ],
  [
    'two listeners on one port',
    { yaml: 'http: {port: 1883}' },
    [['mqtt.port', '1883', 'a port that http.port does not use']],
  ],
  [
    'components with ports of other listeners, reported with all other mistakes',
    { yaml: 'http: {port: 8080}\nranking: {port: 1883}\nindexing: {port: 3003}\nhistory: {rollUpDays: 5}' },
    [
      ['ranking.port', '1883', 'a port that mqtt.port does not use'],
      ['search.port', '8080', 'a port that http.port does not use'],
      ['history.rollUpDays', '5', 'more days than history.maxAgeDays, which must be set'],
    ],
  ],
  [
    'two components on one port',
    { yaml: 'ranking: {port: 7000, enabled: false}\nindexing: {port: 7000}\nsearch: {port: 7000}' },
    [['search.port', '7000', 'a port that indexing.port does not use']],
  ],
  [
    'a broker without address',
    { yaml: 'bridgeIn: [{topics: [a]}]' },
    [['bridgeIn[0].url', undefined, broker]],
  ],
  [
    'a broker without topics',
    { yaml: 'bridgeIn: [{url: "mqtt://b"}]' },
    [['bridgeIn[0].topics', undefined, filters]],
  ],
  [
    'a broker with no topic',
    { yaml: 'bridgeIn: [{url: "mqtt://b", topics: []}]' },
    [['bridgeIn[0].topics', '[]', filters]],
  ],
  [
    'a broker by HTTP',
    { yaml: 'bridgeIn: [{url: "http://b", topics: [a]}]' },
    [['bridgeIn[0].url', '"http://b"', broker]],
  ],
  [
    'a password in an address',
    { yaml: 'bridgeIn: [{url: "mqtt://u:pw@b", topics: [a]}]' },
    [['bridgeIn[0].url', '"mqtt://(hidden)@b"', broker]],
  ],
  [
    'a password in the file',
    { yaml: bridge('password: hunter2') },
    [['bridgeIn[0].password', '(hidden)', /^one of url, topics, clientId, /, 'bridgeIn[0].passwordFile']],
  ],
  [
    'a filter with # inside',
    { yaml: 'bridgeIn: [{url: "mqtt://b", topics: [ok, "a/#/b"]}]' },
    [['bridgeIn[0].topics[1]', '"a/#/b"', filter]],
  ],
  [
    'a filter with + inside a level',
    { yaml: 'bridgeIn: [{url: "mqtt://b", topics: ["a/b+"]}]' },
    [['bridgeIn[0].topics[0]', '"a/b+"', filter]],
  ],
  [
    'a password without user',
    { yaml: bridge('passwordFile: p') },
    [['bridgeIn[0].username', undefined, 'a user name, because passwordFile is set']],
  ],
  [
    'certificate authorities without TLS',
    { yaml: bridge('caFile: ca.pem') },
    [['bridgeIn[0].url', '"mqtt://b"', 'mqtts, because caFile is set']],
  ],
  [
    'two entries with the same session',
    {
      yaml: 'bridgeIn: [{url: "mqtt://b", topics: [a], clientId: c}, {url: "mqtt://b", topics: [d], clientId: c}]',
    },
    [['bridgeIn[1].clientId', '"c"', 'a client identifier that no other entry uses']],
  ],
  [
    'a broker that is text',
    { yaml: 'bridgeIn: ["mqtt://b"]' },
    [['bridgeIn[0]', '"mqtt://b"', 'a group with url and topics']],
  ],
  ['invalid YAML', { yaml: 'http: {port: 1\nmqtt: ]' }, [['', undefined, /^YAML \(/]]],
  ['a key twice', { yaml: 'host: a\nhost: b' }, [['', undefined, /^YAML \(Map keys must be unique/]]],
  ['an undefined alias', { yaml: 'host: *x' }, [['', undefined, /^YAML \(/]]],
  ['invalid JSON', { json: '{"host": }' }, [['', undefined, /^JSON \(/]]],
  [
    'JSON nested too deeply',
    { json: `{"bridges":{"json":[${'['.repeat(5000)}${']'.repeat(5000)}]}}` },
    [['', undefined, 'at most 64 levels']],
  ],
  [
    'YAML nested too deeply',
    { yaml: `bridges: {json: ${'['.repeat(200)}${']'.repeat(200)}}` },
    [['', undefined, 'at most 64 levels']],
  ],
  [
    'an unknown variable',
    { env: { SELVEDGE_HTPP_PORT: '1' } },
    [['SELVEDGE_HTPP_PORT', undefined, 'the name of a setting', 'SELVEDGE_HTTP_PORT']],
  ],
  [
    'a variable without its section',
    { env: { SELVEDGE_LINGER_MS: '1' } },
    [['SELVEDGE_LINGER_MS', undefined, 'the name of a setting', 'SELVEDGE_COMMIT_LINGER_MS']],
  ],
  ['a bad value of a variable', { env: { SELVEDGE_HTTP_PORT: '0x50' } }, [['http.port', '"0x50"', port]]],
  [
    'a group as text',
    { env: { SELVEDGE_PROVISIONING_DEVICES: 'a,b' } },
    [['provisioning.devices', '"a,b"', 'a group of devices, by id']],
  ],
  [
    'an unknown key in a variable',
    { env: { SELVEDGE_PROVISIONING_DEVICES: '{"a":{"plaec":1}}' } },
    [['provisioning.devices.a.plaec', '1', 'one of name, location, fields', undefined]],
  ],
  [
    'disabled certificate verification',
    { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } },
    [['NODE_TLS_REJECT_UNAUTHORIZED', '"0"', /^certificate verification/]],
  ],
  [
    'an unknown flag path',
    { flags: { 'http.prot': '1' } },
    [['http.prot', undefined, 'the path of a setting', 'http.port']],
  ],
  [
    'a bad value of a flag',
    { flags: { 'log.level': 'loud' } },
    [['log.level', '"loud"', 'one of debug, info, warn, error']],
  ],
  [
    'several mistakes at once',
    { yaml: 'htpp: {}\nhttp: {port: x}', env: { SELVEDGE_MQTT_PORT: 'y', PORT: '1' } },
    [
      [
        'PORT',
        undefined,
        'a variable that names its component: SELVEDGE_HTTP_PORT, SELVEDGE_RANKING_PORT, SELVEDGE_INDEXING_PORT, SELVEDGE_PATTERNS_PORT',
      ],
      ['http.port', '"x"', port],
      ['mqtt.port', '"y"', port],
      ['htpp', '{}', top, 'http'],
    ],
  ],
  [
    'several unknown keys of one group, one of them empty',
    { yaml: 'http: {prot: 1, toString: 2, tokenfile: ~}' },
    [
      ['http.prot', '1', httpNames, 'http.port'],
      ['http.toString', '2', httpNames, undefined],
      ['http.tokenfile', undefined, httpNames, 'http.tokenFile'],
    ],
  ],
  [
    'an unknown key in a list, with the mistakes between the other settings of the list',
    { yaml: bridge('usrname: u, passwordFile: p') },
    [
      ['bridgeIn[0].usrname', '"u"', /^one of url, topics, clientId, /, 'bridgeIn[0].username'],
      ['bridgeIn[0].username', undefined, 'a user name, because passwordFile is set'],
    ],
  ],
  [
    'a list for a map',
    { yaml: 'provisioning: {devices: [d]}' },
    [['provisioning.devices', '["d"]', 'a group of devices, by id']],
  ],
]

describe('invalid settings', () => {
  it.each(broken)('%s', async (_, given, rows) => {
    expectMistakes(await load(given), rows)
  })

  it('rejects ambiguous variables of the original platform and names the candidates', async () => {
    for (const [name, parts] of Object.entries(ambiguousVariables)) {
      const { mistakes } = await load({ env: { [name]: 'hunter2' } })
      expect(mistakes).toHaveLength(1)
      expect(mistakes![0]!.path).toBe(name)
      expect(mistakes![0]!.expected.split(', ').length).toBeGreaterThanOrEqual(parts.length)
      expect(JSON.stringify(mistakes)).not.toContain('hunter2')
      // Ports are settings; the other candidates have no effect here and are reported.
      const candidate = /SELVEDGE_\w+$/.exec(mistakes![0]!.expected)![0]
      const { absent } = await settingsOf({ env: { [candidate]: 'off' } })
      expect(absent.map(({ setting }) => setting)).toEqual(name === 'PORT' ? [] : [candidate])
    }
  })

  it('reports the source of each value', async () => {
    const { mistakes } = await load({
      yaml: 'http: {port: x}\n',
      env: { SELVEDGE_MQTT_PORT: 'y' },
      flags: { host: '' },
    })
    const file = lastFile()
    expect(mistakes!.map(({ path, source }) => [path, source])).toEqual([
      ['host', '--set host'],
      ['http.port', file],
      ['mqtt.port', 'environment SELVEDGE_MQTT_PORT'],
    ])
    expect(mistakeLine(mistakes![1]!)).toBe(`http.port: "x": expected ${port} (${file})`)
  })

  it('reports a file that is missing, too large, or not text', async () => {
    const expected = async (file: string) => (await loadSettings({ file, env: {} })).mistakes?.[0]?.expected
    expect(await expected(join(folder, 'none.yaml'))).toBe('a settings file that exists')
    expect(await expected(folder)).toBe('a file, not a folder')
    writeFileSync(join(folder, 'large.yaml'), Buffer.alloc(5 * 1024 * 1024, '#'))
    expect(await expected(join(folder, 'large.yaml'))).toMatch(/^a file of at most/)
    writeFileSync(join(folder, 'binary.yaml'), Buffer.from([0x61, 0xff, 0xfe]))
    expect(await expected(join(folder, 'binary.yaml'))).toBe('text in UTF-8')
    writeFileSync(join(folder, 'bomb.yaml'), yamlBomb())
    expect(await expected(join(folder, 'bomb.yaml'))).toMatch(/^YAML \(Excessive alias count/)
    writeFileSync(join(folder, 'deep.yaml'), `a: ${'['.repeat(100_000)}`)
    expect(await expected(join(folder, 'deep.yaml'))).toMatch(/^YAML \(/)
  })
})

function yamlBomb(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 9; i++) lines.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(10)}]`)
  return lines.join('\n')
}

describe('settings of a bridge', () => {
  const check = (raw: unknown) =>
    (raw as unknown[]).map((_, i) => ({ path: `[${i}].feilds`, expected: 'one of topic, fields' }))

  it('reports the findings of the bridge with their paths', async () => {
    const file = join(folder, 'bridge.yaml')
    writeFileSync(file, 'bridges: {json: [{feilds: auto}]}\n')
    const { mistakes } = await loadSettings({ file, env: {}, bridgeChecks: { json: check } })
    expect(mistakes).toEqual([
      {
        path: 'bridges.json[0].feilds',
        value: '"auto"',
        expected: 'one of topic, fields',
        nearest: 'fields',
        source: file,
      },
    ])
  })
})
