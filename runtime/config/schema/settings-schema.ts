/**
 * Every setting with title, description, default, bounds and whether a change requires a restart. The
 * reference page, the example file, the environment variables and the error messages are generated from this
 * schema. Settings of components that are not built are in `foreign-names.ts` instead.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { backup, disk } from './disk-schema.ts'
import { copies, register, tunnels } from './downward-schema.ts'
import { indexing, ranking, search } from './plugin-schema.ts'
import { type About, about, maybe, section, setting } from './setting.ts'
import { uplinks } from './uplink-schema.ts'
import * as kind from './value-kinds.ts'

const commit = section('Commits', {
  lingerMs: setting(kind.wholeNumber(0, limits.lingerMsMax.value, 'ms'), 20, {
    title: 'Linger',
    description:
      'How long a group that contains only observations waits for more before it is flushed. A longer time saves flash writes and delays acknowledgements.',
  }),
  synchronous: setting(kind.oneOf('FULL', 'NORMAL'), 'FULL', {
    title: 'Durability of a commit',
    description:
      'FULL: acknowledged writes survive a power cut. NORMAL: they survive the end of the process, but a power cut may lose writes since the last checkpoint.',
  }),
})

const clock = section('Clock', {
  believe: setting(kind.oneOf('plausible', 'synced', 'always'), 'plausible', {
    title: 'When the system clock is trusted',
    description:
      'plausible: if its time is plausible. synced: only if syncedFile exists. always: unconditionally. While the clock is not trusted, times are corrected later, before they reach history and uplinks.',
  }),
  syncedFile: setting(kind.fileName(), '/run/systemd/timesync/synchronized', {
    title: 'File that shows that the clock was set',
    description:
      'Exists once the clock was set, and is touched when it is set again. The default is the file of systemd-timesyncd; other NTP clients need a unit that creates one. If only its folder exists, a board without a battery waits for its time source.',
  }),
})

const http = section('HTTP', {
  port: setting(kind.listenPort(), 9090, {
    title: 'HTTP port',
    description: 'Serves /ngsi-ld/v1, /senml, /health/live, /health/ready, /metrics.',
  }),
  tokenFile: setting(kind.fileName(), 'http-token', {
    title: 'File of the HTTP token',
    description:
      'Created at the first start if the listener is not loopback; requests then need it as a Bearer token. Mode 0600.',
  }),
  allowedHosts: setting(kind.listOf('host names', 64, kind.hostName()), [], {
    title: 'Host names of this gateway',
    description:
      'Names, besides localhost and loopback addresses, that a loopback listener accepts in the Host header, such as the name that a reverse proxy forwards. Pages of these hosts may also write. The host of publicUrl is included.',
  }),
  publicUrl: maybe(kind.httpUrl(), {
    title: 'Public address of this gateway',
    description:
      'Context sources send notifications of forwarded subscriptions to it. Default: the address that the subscribing client used.',
  }),
  defaultMediaType: setting(kind.oneOf('application/json', 'application/ld+json'), 'application/json', {
    title: 'Media type without Accept',
    description: 'Used for clients that send no Accept header, or */*.',
  }),
})

const mqtt = section('MQTT', {
  port: setting(kind.listenPort(), 1883, {
    title: 'MQTT port',
    description: 'The embedded broker, MQTT 3.1, 3.1.1 and 5.',
  }),
  passwordFile: setting(kind.fileName(), 'mqtt-passwords', {
    title: 'File of MQTT user names and passwords',
    description:
      'Users with scrypt hashes, edited by `selvedge users`. Required if the listener is not loopback, and then created with one user at the first start. An existing file also applies on loopback. Mode 0600.',
  }),
  maxClients: setting(
    kind.wholeNumber(1, limits.mqttClientsMax.value, 'clients'),
    limits.mqttClientsMax.value,
    {
      title: 'Maximum number of MQTT clients',
      description: 'Further clients are refused.',
    },
  ),
})

const field = kind.groupOf('a group of settings of a field', {
  label: maybe(kind.text(256), {
    title: 'Label of the observed property',
    description: 'rdfs:label of the ObservableProperty, in lower case. Default: the name of the field.',
  }),
  unitCode: maybe(kind.text(32), {
    title: 'Unit',
    description:
      'UN/CEFACT common code (Recommendation 20), such as CEL. Applies if the payload names no unit.',
  }),
  min: maybe(kind.finiteNumber(), { title: 'Smallest expected value', description: 'Becomes qoi:min.' }),
  max: maybe(kind.finiteNumber(), { title: 'Largest expected value', description: 'Becomes qoi:max.' }),
  updateInterval: maybe(kind.seconds(), {
    title: 'Seconds between two observations',
    description: 'Becomes qoi:updateinterval.',
  }),
  valueType: maybe(kind.oneOf('int', 'float', 'string', 'boolean'), {
    title: 'Kind of value',
    description: 'Becomes qoi:valuetype. Default: derived from the first value.',
  }),
  regexp: maybe(kind.text(limits.patternCharactersMax.value), {
    title: 'Pattern of expected text',
    description: 'Becomes qoi:regexp, for values that are text.',
  }),
})

const device = kind.groupOf('a group of settings of a device', {
  name: maybe(kind.text(256), { title: 'Name', description: 'Name of the Platform entity.' }),
  location: maybe(kind.place(), {
    title: 'Place',
    description: 'Longitude first. Location of the Platform entity and of its sensors.',
  }),
  fields: setting(
    kind.mapOf('a group of fields, by name', v.optional(field, {})),
    {},
    {
      title: 'Fields',
      description: 'Facts about the quantities of this device, by field name.',
    },
  ),
})

const deviceIds = (words: About) =>
  setting(kind.listOf('device ids', limits.channelsMax.value, kind.text()), [], words)

const provisioning = section('Devices', {
  mode: setting(kind.oneOf('auto', 'quarantine', 'allow-list'), 'auto', {
    title: 'Handling of new devices',
    defaultText: 'auto while all listeners are loopback, else quarantine',
    description:
      'auto: new devices are accepted. quarantine: their frames wait until `selvedge devices accept` or `allow` accepts the device. allow-list: only listed and declared devices are accepted.',
  }),
  allow: deviceIds({ title: 'Accepted devices', description: 'Accepted in every mode.' }),
  ignore: deviceIds({ title: 'Ignored devices', description: 'Never accepted; their frames are dropped.' }),
  shareObservableProperty: setting(kind.flag(), false, {
    title: 'Share observable properties',
    description: 'One ObservableProperty per label instead of one per field of a device.',
  }),
  devices: setting(
    kind.mapOf('a group of devices, by id', v.optional(device, {})),
    {},
    {
      title: 'Declared devices',
      description: 'Facts about devices that their payloads do not contain, by hardware id.',
    },
  ),
})

const bridgeIn = kind.groupOf('a group with url and topics', {
  url: about(kind.brokerUrl(), { title: 'Address', description: 'The external broker.' }),
  topics: about(kind.filledListOf('topic filters', 256, kind.topicFilter()), {
    title: 'Topic filters',
    description: 'Subscribed with QoS 1: the broker stores messages until they are committed here.',
  }),
  clientId: maybe(kind.text(256), {
    title: 'Client identifier',
    description:
      'Identifies the session at the broker. Default: generated once and stored in the data folder.',
  }),
  username: maybe(kind.text(), { title: 'User name', description: 'Default: none is sent.' }),
  passwordFile: maybe(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line is the password. Mode 0600.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities',
    description: 'PEM file for mqtts. Default: those of the system.',
  }),
})

const history = section('History', {
  maxBytes: setting(kind.wholeNumber(1024 * 1024, 2 ** 50, 'bytes'), 4 * 1024 ** 3, {
    title: 'Maximum size of the history',
    description:
      'Per tenant: the content of its file without the log, including documents. Beyond it, the oldest history is removed, and the gap is recorded.',
  }),
  instancesPerAnswer: setting(
    kind.wholeNumber(1, limits.temporalInstancesMax.value, 'instances'),
    limits.temporalInstancesMax.value,
    {
      title: 'Maximum instances in one response',
      description:
        'A longer history is returned in parts: 206, with the time range of the response. Instances with the same time stay together.',
    },
  ),
  maxAgeDays: maybe(kind.wholeNumber(1, 36_500, 'days'), {
    title: 'Maximum age of history',
    description: 'Default: unlimited.',
  }),
  afterDeletion: setting(kind.oneOf('keep', 'remove'), 'keep', {
    title: 'History of a deleted entity',
    description: 'keep: it is kept, with the time of the deletion. remove: it is deleted with the entity.',
  }),
  rollUpDays: maybe(kind.wholeNumber(1, 36_500, 'days'), {
    title: 'Maximum age of hourly roll-ups',
    description:
      'Numbers older than maxAgeDays are kept as count, minimum, maximum, sum and sum of squares per hour, which aggregate queries use. Default: no roll-ups.',
  }),
})

const outbound = section('Outgoing requests', {
  allowLoopback: setting(kind.flag(), true, {
    title: 'Loopback targets',
    defaultText: 'true while all listeners are loopback, else false',
    description: 'Whether notification endpoints and context documents may have addresses of this machine.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities of receivers',
    description:
      'PEM file. Servers contacted over https or mqtts are verified with these in addition to those of the system.',
  }),
  fetchContexts: setting(kind.flag(), true, {
    title: 'Fetch context documents',
    description: 'Whether a user @context that is not cached may be fetched. Core contexts are built in.',
  }),
  splitEntities: setting(kind.oneOf('completed', 'expected', 'never'), 'completed', {
    title: 'Entities split across brokers',
    description:
      'Value of splitEntities for requests without it. completed: sources evaluate conditions, and the entities they find are completed from the other sources; expected: conditions are evaluated here on complete entities; never: each broker holds complete entities.',
  }),
})

export const settingsSchema = kind.groupOf('a group of settings', {
  data: setting(kind.fileName(), '.selvedge', {
    title: 'Data folder',
    description:
      'Contains all data of the gateway. Relative file names in other settings are relative to it.',
  }),
  host: setting(kind.hostName(), '127.0.0.1', {
    title: 'Address of the listeners',
    description:
      'An address that is not loopback requires credentials, which are created at the first start.',
  }),
  http,
  mqtt,
  commit,
  clock,
  conformance: section('Conformance', {
    profile: setting(kind.versionOf('1.9', '1.8', '1.1.2', 'platform'), '1.9', {
      title: 'Version of the NGSI-LD specification, or the platform',
      description:
        'Applies where versions differ. platform is 1.9 with the extensions that the original platform components expect, see docs/compatibility.md.',
    }),
  }),
  provisioning,
  bridges: section('Firmware bridges', {
    json: setting(kind.listOf('mappings', 256, v.unknown()), [], {
      title: 'Plain JSON devices',
      description:
        'Topic patterns and the paths of device, fields, unit and time in the payloads; see firmware-bridges/json/README.md.',
    }),
  }),
  bridgeIn: setting(kind.listOf('external brokers', 16, bridgeIn), [], {
    title: 'External MQTT brokers',
    description: 'The gateway subscribes to them, and acknowledges messages when they are committed here.',
  }),
  uplinks,
  history,
  register,
  backup,
  disk,
  tunnels,
  copies,
  indexing,
  ranking,
  search,
  outbound,
  log: section('Log', {
    level: setting(kind.oneOf('debug', 'info', 'warn', 'error'), 'info', {
      title: 'Minimum level',
      description: 'Lines below it are not written.',
    }),
  }),
})

/** All settings, complete and checked, with absolute file names; deeply frozen. */
export type Settings = Frozen<v.InferOutput<typeof settingsSchema>>

export type ListenPort = Settings['http']['port']
export type DeviceSettings = Settings['provisioning']['devices'][string]
export type UplinkSettings = Settings['uplinks'][number]
export type FieldSettings = DeviceSettings['fields'][string]

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T
