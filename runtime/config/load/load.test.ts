/**
 * Loading settings: defaults, and precedence of the sources. mistakes.test.ts covers invalid settings.
 */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createSettingsFolder } from '#test/kit/settings-folder.ts'

const { folder, load, settingsOf } = createSettingsFolder()

describe('valid settings', () => {
  it('have a default for everything', async () => {
    const { settings, absent, warnings, file } = await settingsOf({})
    expect(settings).toEqual({
      models: { enabled: true, assign: [] },
      data: join(folder, '.selvedge'),
      host: '127.0.0.1',
      http: {
        port: 9090,
        tokenFile: join(folder, '.selvedge/http-token'),
        allowedHosts: [],
        defaultMediaType: 'application/json',
      },
      mqtt: { port: 1883, passwordFile: join(folder, '.selvedge/mqtt-passwords'), maxClients: 2000 },
      commit: { lingerMs: 20, synchronous: 'FULL' },
      clock: { believe: 'plausible', syncedFile: '/run/systemd/timesync/synchronized' },
      conformance: { profile: '1.9' },
      provisioning: { mode: 'auto', allow: [], ignore: [], shareObservableProperty: false, devices: {} },
      bridges: { json: [] },
      bridgeIn: [],
      register: [],
      tunnels: [],
      'virtual-sensors': { enabled: true, port: 'off', broker: 'mdr' },
      uplinks: [],
      copies: [],
      faults: expect.objectContaining({ enabled: true, port: 'off', broker: 'mdr' }),
      indexing: expect.objectContaining({ enabled: true, port: 'off' }),
      orchestrator: expect.objectContaining({ enabled: true, port: 3001, broker: 'mdr', ranking: 'ranking' }),
      patterns: { enabled: true, port: 'off', batchOperations: true, keepEventsHours: 72 },
      quality: expect.objectContaining({ enabled: true, port: 'off', usualProperties: {} }),
      ranking: expect.objectContaining({ enabled: true, port: 3003, backend: 'indexing' }),
      search: expect.objectContaining({ enabled: true, port: 8080, backend: 'mdr' }),
      history: { maxBytes: 4 * 1024 ** 3, instancesPerAnswer: 5_000, afterDeletion: 'keep' },
      backup: {
        schedule: '17 3 * * *',
        folder: join(folder, '.selvedge/backups'),
        keep: 2,
        verify: true,
        restore: true,
      },
      disk: { reserveBytes: 16 * 1024 ** 2 },
      outbound: { allowLoopback: true, fetchContexts: true, splitEntities: 'completed' },
      log: { level: 'info' },
    })
    expect({ absent, warnings, file }).toEqual({ absent: [], warnings: [], file: undefined })
  })

  it('take flags before environment before file before default', async () => {
    const yaml = 'http: {port: 1001}\nmqtt: {port: 1002}\ncommit: {lingerMs: 3}\n'
    const env = { SELVEDGE_HTTP_PORT: '2001', SELVEDGE_MQTT_PORT: '2002' }
    const { settings } = await settingsOf({ yaml, env, flags: { 'http.port': '4001' } })
    expect([settings.http.port, settings.mqtt.port, settings.commit.lingerMs]).toEqual([4001, 2002, 3])
  })

  it('are the same from JSON and YAML', async () => {
    const yaml =
      'provisioning: {mode: allow-list, allow: ["0012"], devices: {0012: {location: [13.4, 52.5]}}}\n'
    const json =
      '{"provisioning":{"mode":"allow-list","allow":["0012"],"devices":{"0012":{"location":[13.4,52.5]}}}}'
    const [a, b] = [await settingsOf({ yaml }), await settingsOf({ json })]
    expect(a.settings).toEqual(b.settings)
    expect(a.settings.provisioning.devices['0012']).toEqual({
      location: { type: 'Point', coordinates: [13.4, 52.5] },
      fields: {},
    })
  })

  it('keep YAML keys as written', async () => {
    const { settings } = await settingsOf({
      yaml: 'provisioning: {devices: {0x1F: {}, 1e3: {}, 007: {}, true: {}, ~: {}}}\n',
    })
    expect(Object.keys(settings.provisioning.devices)).toEqual(['0x1F', '1e3', '007', 'true', '~'])
  })

  it('treat an empty file, an empty section and an empty variable as absent', async () => {
    for (const yaml of ['', '# nothing\n', 'http:\nmqtt: ~\nprovisioning:\n  devices:\n']) {
      expect((await settingsOf({ yaml, env: { SELVEDGE_HTTP_PORT: '' } })).settings.http.port).toBe(9090)
    }
  })

  it('treat a device or field without facts as declared', async () => {
    const { settings } = await settingsOf({ yaml: 'provisioning: {devices: {a: ~, b: {fields: {t: ~}}}}\n' })
    expect(settings.provisioning.devices).toEqual({ a: { fields: {} }, b: { fields: { t: {} } } })
  })

  it('keep sections apart that are one value in YAML', async () => {
    const env = { SELVEDGE_HTTP_PORT: '2001' }
    const { settings } = await settingsOf({ yaml: 'http: &off {port: off}\nmqtt: *off\n', env })
    expect([settings.http.port, settings.mqtt.port]).toEqual([2001, 'off'])
  })

  it('accept $schema, which names the JSON Schema for editors', async () => {
    const { settings } = await settingsOf({
      json: '{"$schema":"selvedge.schema.json","log":{"level":"warn"}}',
    })
    expect(settings).not.toHaveProperty('$schema')
  })

  it('have safer defaults if a listener is not loopback', async () => {
    for (const host of ['localhost', '127.0.0.2', '::1']) {
      const { settings } = await settingsOf({ env: { SELVEDGE_HOST: host } })
      expect([settings.provisioning.mode, settings.outbound.allowLoopback]).toEqual(['auto', true])
    }
    for (const host of ['0.0.0.0', '::', '192.168.1.4', 'gateway.local']) {
      const { settings } = await settingsOf({ env: { SELVEDGE_HOST: host } })
      expect([settings.provisioning.mode, settings.outbound.allowLoopback]).toEqual(['quarantine', false])
    }
    const env = {
      SELVEDGE_HOST: '::',
      SELVEDGE_PROVISIONING_MODE: 'auto',
      SELVEDGE_OUTBOUND_ALLOW_LOOPBACK: 'true',
    }
    const { settings } = await settingsOf({ env })
    expect([settings.provisioning.mode, settings.outbound.allowLoopback]).toEqual(['auto', true])
  })

  it('accept every kind of value from the environment', async () => {
    const { settings } = await settingsOf({
      env: {
        SELVEDGE_DATA: 'elsewhere',
        SELVEDGE_HTTP_PORT: '0',
        SELVEDGE_MQTT_PORT: 'off',
        SELVEDGE_COMMIT_LINGER_MS: '2000',
        SELVEDGE_CONFORMANCE_PROFILE: '1.8',
        SELVEDGE_PROVISIONING_ALLOW: 'a, 0012',
        SELVEDGE_PROVISIONING_SHARE_OBSERVABLE_PROPERTY: 'TRUE',
        SELVEDGE_BRIDGE_IN: '[{"url":"mqtts://broker:8883","topics":["a/#"],"caFile":"ca.pem"}]',
      },
    })
    expect(settings).toMatchObject({
      data: join(folder, 'elsewhere'),
      http: { port: 0 },
      mqtt: { port: 'off' },
      commit: { lingerMs: 2000 },
      conformance: { profile: '1.8' },
      provisioning: { allow: ['a', '0012'], shareObservableProperty: true },
      bridgeIn: [{ url: 'mqtts://broker:8883', topics: ['a/#'], caFile: join(folder, 'elsewhere/ca.pem') }],
    })
  })

  it('resolve file names of components relative to the data folder, like all others', async () => {
    const identity = { url: 'http://idm', name: 'n', passwordFile: 'idm' }
    const brokers = [
      { url: 'http://b', tokenFile: 't', caFile: 'ca.pem' },
      { url: 'http://c', identity },
    ]
    const { settings } = await settingsOf({
      env: {
        SELVEDGE_DATA: 'elsewhere',
        SELVEDGE_CLOCK_SYNCED_FILE: 'synced',
        SELVEDGE_INDEXING_BROKERS: JSON.stringify(brokers),
        SELVEDGE_RANKING_TOKEN_FILE: 'ranking',
        SELVEDGE_SEARCH_TOKEN_FILE: '/run/search',
        SELVEDGE_SEARCH_SCHEMA_FOLDER: 'schemas',
      },
    })
    const at = (name: string): string => join(folder, 'elsewhere', name)
    expect(settings).toMatchObject({
      clock: { syncedFile: at('synced') },
      indexing: {
        brokers: [{ tokenFile: at('t'), caFile: at('ca.pem') }, { identity: { passwordFile: at('idm') } }],
      },
      ranking: { tokenFile: at('ranking') },
      search: { tokenFile: '/run/search', schemaFolder: at('schemas') },
    })
  })

  it('are deeply frozen', async () => {
    const { settings } = await settingsOf({ yaml: 'provisioning: {devices: {a: {location: [1, 2]}}}\n' })
    const { location } = settings.provisioning.devices['a']!
    for (const part of [settings, settings.http, settings.provisioning.devices, location!.coordinates]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  it('accept and report names of components that are not built', async () => {
    const yaml = 'identity: {anything: [1]}\n'
    const env = {
      CUT_TYPE_URIS: 'true',
      HTTP_SERVER_HOST: 'x',
      RECOVERY_METHOD: 'BME',
      SELVEDGE_IDENTITY_PORT: '1',
    }
    const { absent } = await settingsOf({ yaml, env })
    expect(absent[0]).toEqual({ setting: 'identity', part: 'identity manager' })
    const all = absent.map(({ setting }) => setting)
    expect(all).toEqual(expect.arrayContaining(Object.keys(env)))
    expect(absent).toContainEqual({
      setting: 'RECOVERY_METHOD',
      part: expect.stringContaining('neighbours') as string,
    })
  })

  it('take the variables of the original orchestrator', async () => {
    const original = {
      PLATFORM_AMQP_HOST: 'rabbit.example',
      PLATFORM_CACHE_HOST: 'rediss://redis.example:6380',
      NGSILD_BROKER_URL: 'http://broker.example/ngsi-ld/',
      RANKING_COMPONENT_URL: 'http://ranking.example:3003/',
      HTTP_SERVER_PORT: '3011',
      HTTP_REFERENCE_URL: 'http://here.example:3011/notify',
      VERSION: 'a1b2c3',
    }
    const { settings } = await settingsOf({ env: original })
    expect(settings.orchestrator).toMatchObject({
      amqp: { host: 'amqp://rabbit.example' },
      cache: { host: 'rediss://redis.example:6380' },
      broker: 'http://broker.example/ngsi-ld/v1',
      ranking: 'http://ranking.example:3003/ngsi-ld/v1',
      port: 3011,
      referenceUrl: 'http://here.example:3011/notify',
      version: 'a1b2c3',
    })
    const older = { IOTCRAWLER_RABBIT_HOST: 'r:5673', IOTCRAWLER_REDIS_HOST: 'c' }
    const { settings: same } = await settingsOf({ env: older })
    expect([same.orchestrator.amqp.host, same.orchestrator.cache.host]).toEqual([
      'amqp://r:5673',
      'redis://c',
    ])
    const { mistakes } = await load({ env: { PLATFORM_CACHE_HOST: 'redis://user:secret@c' } })
    expect(mistakes).toMatchObject([{ path: 'orchestrator.cache.host' }])
  })

  it('take the addresses of the virtual sensor creator as host:port or URL', async () => {
    const short = { BROKER_ADDRESS: 'broker.example:9090', CALLBACK_ADDRESS: '10.0.0.7:8080' }
    const { settings } = await settingsOf({ env: short })
    expect(settings['virtual-sensors']).toMatchObject({
      broker: 'http://broker.example:9090/ngsi-ld/v1',
      callbackUrl: 'http://10.0.0.7:8080',
    })
    const long = {
      BROKER_ADDRESS: 'https://broker.example/ngsi-ld/',
      CALLBACK_ADDRESS: 'https://here.example/vs/',
    }
    const { settings: full } = await settingsOf({ env: long })
    expect(full['virtual-sensors']).toMatchObject({
      broker: 'https://broker.example/ngsi-ld/v1',
      callbackUrl: 'https://here.example/vs',
    })
  })

  it('take the variables of the original pattern extractor, and report those without effect', async () => {
    const env = {
      PATTERN_HOST: 'http://patterns.example:8087',
      ENABLE_BATCH_OPERATIONS: 'false',
      SELVEDGE_PATTERNS_PORT: '8087',
    }
    const idle = [
      ...['PATTERN_IDM_USER', 'PATTERN_IDM_PASS', 'PYTHON_RPC_SOCKET'],
      ...['MONGO_HOST', 'MONGO_DB', 'MONGO_USER', 'MONGO_PASSWORD', 'BROKER_HOST', 'IDM_HOST', 'CPM_HOST']
        .concat('ENABLE_AUTH')
        .map((name) => `SELVEDGE_PATTERNS_${name}`),
    ]
    const { settings, absent } = await settingsOf({
      env: { ...env, ...Object.fromEntries(idle.map((name) => [name, 'x'])) },
    })
    expect(settings.patterns).toMatchObject({
      callbackUrl: 'http://patterns.example:8087',
      batchOperations: false,
      port: 8087,
    })
    expect(absent.map(({ setting }) => setting)).toEqual(idle)
  })

  it('come with warnings about settings that are probably not intended', async () => {
    const yaml = `
http: {port: off}
mqtt: {port: off}
`
    expect((await settingsOf({ yaml })).warnings).toEqual([
      'http.port and mqtt.port are off and bridgeIn is empty: no data can arrive',
    ])
    expect((await settingsOf({ yaml: 'provisioning: {mode: allow-list}' })).warnings).toEqual([
      'provisioning.mode is allow-list and no device is allowed or declared: no device will be accepted',
    ])
    const bridge = 'bridgeIn: [{url: "mqtt://far", topics: [a], username: u, passwordFile: p}]'
    expect((await settingsOf({ yaml: bridge })).warnings).toEqual([
      'bridgeIn[0] sends its password unencrypted; use mqtts',
    ])
    const source = 'quality: {sources: {hosts: [{url: "amqp://far", username: u, passwordFile: p}]}}'
    expect((await settingsOf({ yaml: source })).warnings).toEqual([
      'quality.sources.hosts[0] sends its password unencrypted; use amqps',
    ])
  })
})
