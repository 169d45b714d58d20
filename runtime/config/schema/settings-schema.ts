/**
 * Every setting with its bounds, its default, and its documentation as a comment: "TITLE. DESCRIPTION". The
 * reference page, the example file, the environment variables and the error messages are generated from this
 * schema. Settings of components that are not built are in `foreign-names.ts` instead.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { backup, disk } from './disk-schema.ts'
import { copies, register, tunnels } from './downward-schema.ts'
import { faults } from './faults-schema.ts'
import { models } from './model-settings-schema.ts'
import { orchestrator } from './orchestrator-schema.ts'
import { indexing, patterns, quality, ranking, search, virtualSensors } from './plugin-schema.ts'
import { maybe, section, setting } from './setting.ts'
import { uplinks } from './uplink-schema.ts'
import * as kind from './value-kinds.ts'

const commit = section('Commits', {
  /**
   * Linger. How long a group that contains only observations waits for more before it is flushed. A longer
   * time saves flash writes and delays acknowledgements.
   */
  lingerMs: setting(kind.wholeNumber(0, limits.lingerMsMax.value, 'ms'), 20),
  /**
   * Durability of a commit. FULL: acknowledged writes survive a power cut. NORMAL: they survive the end of
   * the process, but a power cut may lose writes since the last checkpoint.
   */
  synchronous: setting(kind.oneOf('FULL', 'NORMAL'), 'FULL'),
})

const clock = section('Clock', {
  /**
   * When the system clock is trusted. plausible: if its time is plausible. synced: only if syncedFile exists.
   * always: unconditionally. While the clock is not trusted, times are corrected later, before they reach
   * history and uplinks.
   */
  believe: setting(kind.oneOf('plausible', 'synced', 'always'), 'plausible'),
  /**
   * File that shows that the clock was set. Exists once the clock was set, and is touched when it is set
   * again. The default is the file of systemd-timesyncd; other NTP clients need a unit that creates one. If
   * only its folder exists, a board without a battery waits for its time source.
   */
  syncedFile: setting(kind.fileName(), '/run/systemd/timesync/synchronized'),
})

const http = section('HTTP', {
  /** HTTP port. Serves /ngsi-ld/v1, /senml, /health/live, /health/ready, /metrics. */
  port: setting(kind.listenPort(), 9090),
  /**
   * File of the HTTP token. Created at the first start if the listener is not loopback; requests then need it
   * as a Bearer token. Mode 0600.
   */
  tokenFile: setting(kind.fileName(), 'http-token'),
  /**
   * Host names of this gateway. Names, besides localhost and loopback addresses, that a loopback listener
   * accepts in the Host header, such as the name that a reverse proxy forwards. Pages of these hosts may also
   * write. The host of publicUrl is included.
   */
  allowedHosts: setting(kind.listOf('host names', 64, kind.hostName()), []),
  /**
   * Public address of this gateway. Context sources send notifications of forwarded subscriptions to it.
   * Default: the address that the subscribing client used.
   */
  publicUrl: maybe(kind.httpUrl()),
  /** Media type without Accept. Used for clients that send no Accept header, or accept any type. */
  defaultMediaType: setting(kind.oneOf('application/json', 'application/ld+json'), 'application/json'),
})

const mqtt = section('MQTT', {
  /** MQTT port. The embedded broker, MQTT 3.1, 3.1.1 and 5. */
  port: setting(kind.listenPort(), 1883),
  /**
   * File of MQTT user names and passwords. Users with scrypt hashes, edited by `selvedge users`. Required if
   * the listener is not loopback, and then created with one user at the first start. An existing file also
   * applies on loopback. Mode 0600.
   */
  passwordFile: setting(kind.fileName(), 'mqtt-passwords'),
  /** Maximum number of MQTT clients. Further clients are refused. */
  maxClients: setting(
    kind.wholeNumber(1, limits.mqttClientsMax.value, 'clients'),
    limits.mqttClientsMax.value,
  ),
})

const field = kind.groupOf('a group of settings of a field', {
  /**
   * Label of the observed property. rdfs:label of the ObservableProperty, in lower case. Default: the name of
   * the field.
   */
  label: maybe(kind.text(256)),
  /** Unit. UN/CEFACT common code (Recommendation 20), such as CEL. Applies if the payload names no unit. */
  unitCode: maybe(kind.text(32)),
  /** Smallest expected value. Becomes qoi:min. */
  min: maybe(kind.finiteNumber()),
  /** Largest expected value. Becomes qoi:max. */
  max: maybe(kind.finiteNumber()),
  /** Seconds between two observations. Becomes qoi:updateinterval. */
  updateInterval: maybe(kind.seconds()),
  /** Kind of value. Becomes qoi:valuetype. Default: derived from the first value. */
  valueType: maybe(kind.oneOf('int', 'float', 'string', 'boolean')),
  /** Pattern of expected text. Becomes qoi:regexp, for values that are text. */
  regexp: maybe(kind.text(limits.patternCharactersMax.value)),
})

const device = kind.groupOf('a group of settings of a device', {
  /** Name. Name of the Platform entity. */
  name: maybe(kind.text(256)),
  /** Place. Longitude first. Location of the Platform entity and of its sensors. */
  location: maybe(kind.place()),
  /** Fields. Facts about the quantities of this device, by field name. */
  fields: setting(kind.mapOf('a group of fields, by name', v.optional(field, {})), {}),
})

const deviceIds = setting(kind.listOf('device ids', limits.channelsMax.value, kind.text()), [])

const conformance = section('Conformance', {
  /**
   * Version of the NGSI-LD specification, or the platform. Applies where versions differ. platform is 1.9
   * with the extensions that the original platform components expect, see docs/compatibility.md.
   */
  profile: setting(kind.versionOf('1.9', '1.8', '1.1.2', 'platform'), '1.9'),
})

const provisioning = section('Devices', {
  /**
   * Handling of new devices. auto: new devices are accepted. quarantine: their frames wait until `selvedge
   * devices accept` or `allow` accepts the device. allow-list: only listed and declared devices are accepted.
   */
  mode: setting(
    kind.oneOf('auto', 'quarantine', 'allow-list'),
    'auto',
    'auto while all listeners are loopback, else quarantine',
  ),
  /** Accepted devices. Accepted in every mode. */
  allow: deviceIds,
  /** Ignored devices. Never accepted; their frames are dropped. */
  ignore: deviceIds,
  /** Share observable properties. One ObservableProperty per label instead of one per field of a device. */
  shareObservableProperty: setting(kind.flag(), false),
  /** Declared devices. Facts about devices that their payloads do not contain, by hardware id. */
  devices: setting(kind.mapOf('a group of devices, by id', v.optional(device, {})), {}),
})

const bridges = section('Firmware bridges', {
  /**
   * Plain JSON devices. Topic patterns and the paths of device, fields, unit and time in the payloads; see
   * firmware-bridges/json/README.md.
   */
  json: setting(kind.listOf('mappings', 256, v.unknown()), []),
})

const bridgeIn = kind.groupOf('a group with url and topics', {
  /** Address. The external broker. */
  url: kind.brokerUrl(),
  /** Topic filters. Subscribed with QoS 1: the broker stores messages until they are committed here. */
  topics: kind.filledListOf('topic filters', 256, kind.topicFilter()),
  /**
   * Client identifier. Identifies the session at the broker. Default: generated once and stored in the data
   * folder.
   */
  clientId: maybe(kind.text(256)),
  /** User name. Default: none is sent. */
  username: maybe(kind.text()),
  /** File of the password. Its first line is the password. Mode 0600. */
  passwordFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file for mqtts. Default: those of the system. */
  caFile: maybe(kind.fileName()),
})

const history = section('History', {
  /**
   * Maximum size of the history. Per tenant: the content of its file without the log, including documents.
   * Beyond it, the oldest history is removed, and the gap is recorded.
   */
  maxBytes: setting(kind.wholeNumber(1024 * 1024, 2 ** 50, 'bytes'), 4 * 1024 ** 3),
  /**
   * Maximum instances in one response. A longer history is returned in parts: 206, with the time range of the
   * response. Instances with the same time stay together.
   */
  instancesPerAnswer: setting(
    kind.wholeNumber(1, limits.temporalInstancesMax.value, 'instances'),
    limits.temporalInstancesMax.value,
  ),
  /** Maximum age of history. Default: unlimited. */
  maxAgeDays: maybe(kind.wholeNumber(1, 36_500, 'days')),
  /**
   * History of a deleted entity. keep: it is kept, with the time of the deletion. remove: it is deleted with
   * the entity.
   */
  afterDeletion: setting(kind.oneOf('keep', 'remove'), 'keep'),
  /**
   * Maximum age of hourly roll-ups. Numbers older than maxAgeDays are kept as count, minimum, maximum, sum
   * and sum of squares per hour, which aggregate queries use. Default: no roll-ups.
   */
  rollUpDays: maybe(kind.wholeNumber(1, 36_500, 'days')),
})

const outbound = section('Outgoing requests', {
  /**
   * Loopback targets. Whether notification endpoints and context documents may have addresses of this
   * machine.
   */
  allowLoopback: setting(kind.flag(), true, 'true while all listeners are loopback, else false'),
  /**
   * Certificate authorities of receivers. PEM file. Servers contacted over https or mqtts are verified with
   * these in addition to those of the system.
   */
  caFile: maybe(kind.fileName()),
  /**
   * Fetch context documents. Whether a user @context that is not cached may be fetched. Core contexts are
   * built in.
   */
  fetchContexts: setting(kind.flag(), true),
  /**
   * Entities split across brokers. Value of splitEntities for requests without it. completed: sources
   * evaluate conditions, and the entities they find are completed from the other sources; expected:
   * conditions are evaluated here on complete entities; never: each broker holds complete entities.
   */
  splitEntities: setting(kind.oneOf('completed', 'expected', 'never'), 'completed'),
})

const log = section('Log', {
  /** Minimum level. Lines below it are not written. */
  level: setting(kind.oneOf('debug', 'info', 'warn', 'error'), 'info'),
})

export const settingsSchema = kind.groupOf('a group of settings', {
  /**
   * Data folder. Contains all data of the gateway. Relative file names in other settings are relative to it.
   */
  data: setting(kind.fileName(), '.selvedge'),
  /**
   * Address of the listeners. An address that is not loopback requires credentials, which are created at the
   * first start.
   */
  host: setting(kind.hostName(), '127.0.0.1'),
  http,
  mqtt,
  commit,
  clock,
  conformance,
  provisioning,
  bridges,
  /**
   * External MQTT brokers. The gateway subscribes to them, and acknowledges messages when they are committed
   * here.
   */
  bridgeIn: setting(kind.listOf('external brokers', 16, bridgeIn), []),
  uplinks,
  history,
  register,
  backup,
  disk,
  tunnels,
  copies,
  faults,
  models,
  indexing,
  orchestrator,
  patterns,
  quality,
  ranking,
  search,
  'virtual-sensors': virtualSensors,
  outbound,
  log,
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
