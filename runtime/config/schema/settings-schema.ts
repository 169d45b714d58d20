/**
 * Every setting with title, description, default, bounds and whether a change takes a restart. The reference page,
 * the example file, the environment names and the messages about mistakes are made from this one value. It names
 * no setting of a part that is not built; those are in `foreign-names.ts`.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { backup, disk } from './disk-schema.ts'
import { copies, register, tunnels } from './downward-schema.ts'
import { indexing, ranking, search } from './plugin-schema.ts'
import { type About, about, maybe, section, setting } from './setting.ts'
import { uplinks } from './uplink-schema.ts'
import * as kind from './value-kinds.ts'

const commit = section('How writes reach the disk', {
  lingerMs: setting(kind.wholeNumber(0, limits.lingerMsMax.value, 'ms'), 20, {
    title: 'Linger',
    description:
      'How long a group of nothing but observations waits for company before it is flushed. More spares flash memory and delays acknowledgements.',
  }),
  synchronous: setting(kind.oneOf('FULL', 'NORMAL'), 'FULL', {
    title: 'Durability of a commit',
    description:
      'FULL: what is acknowledged survives a power cut. NORMAL: it survives the end of the process, but a power cut may take what came after the last checkpoint.',
  }),
})

const clock = section('Clock', {
  believe: setting(kind.oneOf('plausible', 'synced', 'always'), 'plausible', {
    title: 'When the clock of the system is believed',
    description:
      'plausible: where nothing speaks against it. synced: only where syncedFile is there. always: whatever it says. While it is not, what is stamped waits to be put right before it goes to history and uplinks.',
  }),
  syncedFile: setting(kind.fileName(), '/run/systemd/timesync/synchronized', {
    title: 'File that says that the clock was set',
    description:
      'There once the clock was set, touched when it is set again. The default is that of systemd-timesyncd; other NTP clients need a unit that makes one. While its folder is there and the file is not, a board without battery is known to wait for its time.',
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
      'Made at the first start where the listener is not loopback; requests then need it as Bearer token. Mode 0600.',
  }),
  allowedHosts: setting(kind.listOf('host names', 64, kind.hostName()), [], {
    title: 'Host names of this gateway',
    description:
      'Names, besides localhost and loopback addresses, that a loopback listener accepts in the Host header, such as the name that a reverse proxy passes on. Pages of these hosts may also write. publicUrl counts as one.',
  }),
  publicUrl: maybe(kind.httpUrl(), {
    title: 'Address of this gateway for others',
    description:
      'Where context sources bring notifications of subscriptions passed on to them. Left out: the address by which the client who subscribed reached it.',
  }),
  defaultMediaType: setting(kind.oneOf('application/json', 'application/ld+json'), 'application/json', {
    title: 'Media type without Accept',
    description: 'What a client gets that sends no Accept header, or */*.',
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
      'Users with scrypt hashes, kept by `selvedge users`. Needed where the listener is not loopback, and then made with one user at the first start. Where the file exists, it holds on loopback, too. Mode 0600.',
  }),
  maxClients: setting(
    kind.wholeNumber(1, limits.mqttClientsMax.value, 'clients'),
    limits.mqttClientsMax.value,
    {
      title: 'Most MQTT clients at a time',
      description: 'A client beyond is refused.',
    },
  ),
})

const field = kind.groupOf('a group of settings of a field', {
  label: maybe(kind.text(256), {
    title: 'Label of the observed property',
    description:
      'rdfs:label of the ObservableProperty, written in lower case. Left out: the name of the field.',
  }),
  unitCode: maybe(kind.text(32), {
    title: 'Unit',
    description:
      'UN/CEFACT common code (Recommendation 20), such as CEL. Stands where the payload names no unit.',
  }),
  min: maybe(kind.finiteNumber(), { title: 'Least expected value', description: 'Becomes qoi:min.' }),
  max: maybe(kind.finiteNumber(), { title: 'Greatest expected value', description: 'Becomes qoi:max.' }),
  updateInterval: maybe(kind.seconds(), {
    title: 'Seconds between two observations',
    description: 'Becomes qoi:updateinterval.',
  }),
  valueType: maybe(kind.oneOf('int', 'float', 'string', 'boolean'), {
    title: 'Kind of value',
    description: 'Becomes qoi:valuetype. Left out: told from the first value.',
  }),
  regexp: maybe(kind.text(limits.patternCharactersMax.value), {
    title: 'Pattern of expected text',
    description: 'Becomes qoi:regexp, for values that are text.',
  }),
})

const device = kind.groupOf('a group of settings of a device', {
  name: maybe(kind.text(256), { title: 'Name', description: 'Name of the Platform.' }),
  location: maybe(kind.place(), {
    title: 'Place',
    description: 'Longitude first. Location of the Platform and of its sensors.',
  }),
  fields: setting(
    kind.mapOf('a group of fields, by name', field),
    {},
    {
      title: 'Fields',
      description: 'What is known of the quantities of this device, by field name.',
    },
  ),
})

const deviceIds = (words: About) =>
  setting(kind.listOf('device ids', limits.channelsMax.value, kind.text()), [], words)

const provisioning = section('Devices', {
  mode: setting(kind.oneOf('auto', 'quarantine', 'allow-list'), 'auto', {
    title: 'What happens to a device seen for the first time',
    defaultText: 'auto while all listeners are loopback, else quarantine',
    description:
      'auto: it is taken. quarantine: its frames wait until `selvedge devices accept` or `allow` accepts it. allow-list: only listed and declared ones are taken.',
  }),
  allow: deviceIds({ title: 'Accepted devices', description: 'Taken in every mode.' }),
  ignore: deviceIds({ title: 'Ignored devices', description: 'Never taken; their frames are dropped.' }),
  shareObservableProperty: setting(kind.flag(), false, {
    title: 'Share observable properties',
    description: 'One ObservableProperty per label instead of one per field of a device.',
  }),
  devices: setting(
    kind.mapOf('a group of devices, by id', device),
    {},
    {
      title: 'Declared devices',
      description: 'What people know of a device and its payload does not say, by hardware id.',
    },
  ),
})

const bridgeIn = kind.groupOf('a group with url and topics', {
  url: about(kind.brokerUrl(), { title: 'Address', description: 'The external broker.' }),
  topics: about(kind.filledListOf('topic filters', 256, kind.topicFilter()), {
    title: 'Topic filters',
    description: 'What is subscribed there, with QoS 1: the broker keeps what was not committed here.',
  }),
  clientId: maybe(kind.text(256), {
    title: 'Client identifier',
    description: 'The session at the broker goes by it. Left out: made once and kept in the data folder.',
  }),
  username: maybe(kind.text(), { title: 'User name', description: 'Left out: none is sent.' }),
  passwordFile: maybe(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line. Mode 0600.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities',
    description: 'PEM file for mqtts. Left out: those of the system.',
  }),
})

const history = section('History', {
  maxBytes: setting(kind.wholeNumber(1024 * 1024, 2 ** 50, 'bytes'), 4 * 1024 ** 3, {
    title: 'Most bytes of history',
    description:
      'Per tenant: what its file holds apart from the log, documents included. The oldest history is removed beyond, and the gap is recorded.',
  }),
  instancesPerAnswer: setting(
    kind.wholeNumber(1, limits.temporalInstancesMax.value, 'instances'),
    limits.temporalInstancesMax.value,
    {
      title: 'Most instances in one answer',
      description:
        'A longer history comes in parts: 206, with the range of time that the answer holds. What shares one time stays together.',
    },
  ),
  maxAgeDays: maybe(kind.wholeNumber(1, 36_500, 'days'), {
    title: 'Greatest age of history',
    description: 'Left out: kept whatever its age.',
  }),
  afterDeletion: setting(kind.oneOf('keep', 'remove'), 'keep', {
    title: 'History of a deleted entity',
    description: 'keep: it stays, and tells when the entity was deleted. remove: it goes with the entity.',
  }),
  rollUpDays: maybe(kind.wholeNumber(1, 36_500, 'days'), {
    title: 'Greatest age of hourly roll-ups',
    description:
      'Numbers older than maxAgeDays stay as count, least, greatest, sum and sum of squares per hour, which aggregates are answered from. Left out: there are none.',
  }),
})

const outbound = section('Requests to others', {
  allowLoopback: setting(kind.flag(), true, {
    title: 'Loopback targets',
    defaultText: 'true while all listeners are loopback, else false',
    description: 'Whether notifications and context documents may be at addresses of this machine.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities of receivers',
    description:
      'PEM file. Who is asked or notified by https or mqtts is trusted by these as well as by those of the system.',
  }),
  fetchContexts: setting(kind.flag(), true, {
    title: 'Fetch context documents',
    description: 'Whether a user @context that is not kept may be fetched. The core contexts never are.',
  }),
  splitEntities: setting(kind.oneOf('completed', 'expected', 'never'), 'completed', {
    title: 'Entities of which several brokers hold parts',
    description:
      'What splitEntities means where a request does not say it. completed: sources judge conditions, and what one finds is completed by the others; expected: conditions are judged here on whole entities; never: each broker has its entities whole.',
  }),
})

export const settingsSchema = kind.groupOf('a group of settings', {
  data: setting(kind.fileName(), '.selvedge', {
    title: 'Data folder',
    description: 'Holds everything the gateway keeps. Other relative file names in settings start there.',
  }),
  host: setting(kind.hostName(), '127.0.0.1', {
    title: 'Address of the listeners',
    description: 'Anything that is not loopback needs credentials, which are made at the first start.',
  }),
  http,
  mqtt,
  commit,
  clock,
  conformance: section('Conformance', {
    profile: setting(kind.versionOf('1.9', '1.8', '1.1.2', 'platform'), '1.9', {
      title: 'Version of the NGSI-LD specification, or the platform',
      description:
        'Decides where versions differ; platform is 1.9 with what the original components of the platform expect, see docs/compatibility.md.',
    }),
  }),
  provisioning,
  bridges: section('Firmware bridges', {
    json: setting(kind.listOf('mappings', 256, v.unknown()), [], {
      title: 'Plain JSON devices',
      description:
        'Topic patterns and the paths of device, fields, unit and time in their payloads; firmware-bridges/json/README.md has all of it.',
    }),
  }),
  bridgeIn: setting(kind.listOf('external brokers', 16, bridgeIn), [], {
    title: 'External MQTT brokers',
    description: 'Subscribed to; acknowledged there when committed here.',
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
      title: 'Least level',
      description: 'Lines below it are not written.',
    }),
  }),
})

/** All settings, complete and checked; file names are absolute. Frozen to the leaves. */
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
