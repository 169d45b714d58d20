/**
 * Settings of the plugins. They are part of the one schema, so that all mistakes are reported together and
 * one page documents all settings. A section has the name of its plugin, and a plugin receives only its own
 * section.
 */

import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

/** Names of the plugins and of their sections. */
export const pluginNames = [
  'faults',
  'indexing',
  'orchestrator',
  'patterns',
  'quality',
  'ranking',
  'search',
  'virtual-sensors',
] as const
export type PluginName = (typeof pluginNames)[number]

export const ranking = section('Ranking', {
  /** Enabled. false: the ranking plugin is not started. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves /ngsi-ld/v1/entities with weights. The plugin is always available under its name on the
   * main port.
   */
  port: setting(kind.listenPort(), 3003),
  /** Ranked broker. indexing or mdr of this gateway, or the address of any NGSI-LD broker (INDEXER_URL). */
  backend: setting(kind.backend('indexing', 'mdr'), 'indexing'),
  /** Backend timeout. For one ranked list, all pages together. Beyond it the response is 504. */
  timeoutMs: setting(kind.wholeNumber(100, 600_000, 'ms'), 10_000),
  /**
   * File of the token. Its first line is sent as a Bearer token to an external backend, which never receives
   * credentials of clients. Mode 0600.
   */
  tokenFile: maybe(kind.fileName()),
})

const identity = kind.groupOf('a group with url, name and passwordFile', {
  /** Identity manager. Its address, without /v1/auth/tokens. */
  url: kind.baseUrl(),
  /** User name. User name of this gateway there. */
  name: kind.text(256),
  /** File of the password. Its first line is the password. Mode 0600. */
  passwordFile: kind.fileName(),
})

const indexed = kind.groupOf('a group with url', {
  /** Address. Address of an NGSI-LD broker, without /ngsi-ld/v1. */
  url: kind.baseUrl(),
  /** Tenant at the broker. Default: its default tenant. */
  tenant: maybe(kind.label()),
  /** File of the token. Its first line is sent as a Bearer token. Mode 0600. Read again for each request. */
  tokenFile: maybe(kind.fileName()),
  /** Token issuer. An identity manager; its tokens are sent as X-Auth-Token and renewed. */
  identity: maybe(identity),
  /** Certificate authorities. PEM file, in addition to those of the system and of outbound.caFile. */
  caFile: maybe(kind.fileName()),
})

export const indexing = section('Indexing', {
  /** Enabled. false: the indexing plugin is not started. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves /ngsi-ld/v1/entities from the index, and /api/broker. The plugin is always available
   * under its name on the main port.
   */
  port: setting(kind.listenPort(), 'off'),
  /**
   * Address for notifications. Registered brokers send notifications to it; without /api/notification
   * (INDEXER_HOST). Default: the address of the listener.
   */
  callbackUrl: maybe(kind.baseUrl()),
  /**
   * Registered brokers. Indexed in addition to this gateway and to brokers registered by POST /api/broker.
   */
  brokers: setting(kind.listOf('brokers', 64, indexed), []),
  /** When registered brokers are read again. Finds changes that notifications missed. */
  crawl: setting(kind.cron(), '17 3 * * *'),
  /** Pages per second. Maximum request rate while a broker is read. */
  pagesPerSecond: setting(kind.above0('pages'), 5),
  /**
   * Learn brokers from registrations. Whether brokers named by context source registrations are indexed as
   * well.
   */
  learn: setting(kind.flag(), false),
})

const usualProperty = kind.groupOf('a group with min, max, regexp or updateInterval', {
  /** Smallest usual value. Smaller ones are implausible. */
  min: maybe(kind.finiteNumber()),
  /** Largest usual value. Larger ones are implausible. */
  max: maybe(kind.finiteNumber()),
  /** Pattern of usual text. The whole text must match; for values that are text. */
  regexp: maybe(kind.text(limits.patternCharactersMax.value)),
  /** Seconds between two observations. For sensors without an update interval. */
  updateInterval: maybe(kind.seconds()),
})

const qualitySource = kind.groupOf('a group with url', {
  /** Broker. Its address; streams that name it by scheme, host and port are followed there. */
  url: kind.sourceUrl(),
  /** User name. User name of this gateway there. */
  username: maybe(kind.text(256)),
  /** File of the password. Its first line is the password. Mode 0600. */
  passwordFile: maybe(kind.fileName()),
  /** File of the token. Its first line is sent as a Bearer token to an NGSI-LD broker. Mode 0600. */
  tokenFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file, in addition to those of the system. */
  caFile: maybe(kind.fileName()),
})

const qualitySources = section('Sources of streams', {
  /**
   * Allowed brokers. With the credentials for each. Default: brokers at loopback addresses, without
   * credentials, if outbound.allowLoopback is true.
   */
  hosts: setting(kind.listOf('brokers', 64, qualitySource), []),
})

export const quality = section('Quality analyser', {
  /** Enabled. false: the quality analyser is not started. */
  enabled: setting(kind.flag(), true),
  /** Own port. Serves the qualities of streams (SE_PORT); they are also under /quality on the main port. */
  port: setting(kind.listenPort(), 'off'),
  /** Host of that port. Name or address to bind to (SE_HOST). Default: host. */
  host: maybe(kind.hostName()),
  /**
   * Rated broker. mdr: this gateway; or the address of any NGSI-LD broker (NGSI_ADDRESS), whose streams are
   * rated instead.
   */
  broker: setting(kind.backend('mdr'), 'mdr'),
  /** Tenant at that broker. Default: its default tenant. */
  tenant: maybe(kind.label()),
  /**
   * File of the token for that broker. Its first line is sent as a Bearer token. Mode 0600. Read again for
   * each request.
   */
  tokenFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file, in addition to those of the system and of outbound.caFile. */
  caFile: maybe(kind.fileName()),
  /** Pages per second. Maximum request rate while that broker is read. */
  pagesPerSecond: setting(kind.above0('pages'), 50),
  /**
   * Address for notifications. A remote broker sends notifications to it (SE_CALLBACK). Default: the address
   * of the listener, with /callback.
   */
  callbackUrl: maybe(kind.baseUrl()),
  /**
   * Time between two writes of a stream. A changed rated value is written at once, other figures at most this
   * often. A longer time saves flash writes.
   */
  writeIntervalMs: setting(kind.wholeNumber(0, 3_600_000, 'ms'), 10_000),
  /**
   * Similarity of labels. How similar the label of a property must be to a usual one, so that its value range
   * is used for sensors without metadata.
   */
  labelSimilarity: setting(kind.share(), 0.8),
  /**
   * Usual properties. Value ranges and update intervals by label of the observed property, for sensors that
   * declare none. They are added to the shipped ones; one of the same label replaces it, an empty one removes
   * it.
   */
  usualProperties: setting(kind.mapOf('a group of properties, by label', v.optional(usualProperty, {})), {}),
  /**
   * Distance of neighbours. How far away streams of the same property may be to count as neighbours of a
   * stream.
   */
  neighbourMeters: setting(kind.wholeNumber(0, 1_000_000, 'metres'), 20_000),
  /** Unknown figures. true: they are written as NA (enablena of the original). false: they are absent. */
  enableNa: setting(kind.flag(), false),
  /** Log lines. How many the page shows at first (maxlogentries of the original). */
  maxLogEntries: setting(kind.wholeNumber(1, 500, 'lines'), 30),
  /** Sources. MQTT, AMQP and NGSI-LD brokers that streams name as their source (iot-stream:providedBy). */
  sources: qualitySources,
})

export const patterns = section('Pattern extractor', {
  /** Enabled. false: the pattern extractor is not started. Without models it follows nothing. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves /api/model and its notifications (PORT of the original). The plugin is always available
   * under its name on the main port.
   */
  port: setting(kind.listenPort(), 'off'),
  /**
   * Address for notifications. Base address of the callbacks in the subscriptions of models, without
   * /api/notification (PATTERN_HOST). Default: the address of the listener.
   */
  callbackUrl: maybe(kind.baseUrl()),
  /**
   * Batch operations. true: events are written by /entityOperations, up to 100 per request. false: one by one
   * (ENABLE_BATCH_OPERATIONS).
   */
  batchOperations: setting(kind.flag(), true),
  /** Age of events. An Event is deleted this long after it was created. */
  keepEventsHours: setting(kind.wholeNumber(1, 87_600, 'hours'), 72),
})

export const search = section('Search enabler', {
  /** Enabled. false: the search enabler is not started. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves GraphQL at /graphql and its IDE at /. The plugin is always available under its name on
   * the main port.
   */
  port: setting(kind.listenPort(), 8080),
  /**
   * Searched broker. mdr, ranking or indexing of this gateway, or the address of any NGSI-LD broker
   * (PLATFORM_ORCHESTRATOR_URL).
   */
  backend: setting(kind.backend('mdr', 'ranking', 'indexing'), 'mdr'),
  /**
   * File of the token for the backend. Its first line is sent as a Bearer token to an external backend. Mode
   * 0600.
   */
  tokenFile: maybe(kind.fileName()),
  /** Backend timeout. For one response; beyond it the affected fields are errors. */
  timeoutMs: setting(kind.wholeNumber(100, 30_000, 'ms'), 10_000),
  /** Folder of additional schemas. Files *.graphqls and *.graphql there add types and queries. */
  schemaFolder: maybe(kind.fileName()),
  /**
   * Introspection. Whether clients may query the schema; the IDE needs it for completion and documentation.
   */
  introspection: setting(kind.flag(), true),
  /**
   * Pages of other origins. Whether pages of other origins may send requests (Access-Control-Allow-Origin:
   * *), as the original components allow.
   */
  cors: setting(kind.flag(), false),
  /** Version label. Response of GET /version (VERSION). Default: the version of the gateway. */
  version: maybe(kind.text(256)),
})

export const virtualSensors = section('Virtual sensor creator', {
  /**
   * Enabled. false: the virtual sensor creator is not started. Without virtual sensors it follows nothing.
   */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves /api/replaceBrokenSensor and the others, and the callback. They are always available
   * under the name of the plugin on the main port, and those of /api on the port of the search enabler.
   */
  port: setting(kind.listenPort(), 'off'),
  /**
   * Served broker. mdr: this gateway; or host:port or the address of any NGSI-LD broker (BROKER_ADDRESS),
   * whose sensors are replaced instead.
   */
  broker: setting(kind.brokerAddress('mdr'), 'mdr'),
  /** Tenant at that broker. Default: its default tenant. */
  tenant: maybe(kind.label()),
  /**
   * File of the token for that broker. Its first line is sent as a Bearer token. Mode 0600. Read again for
   * each request.
   */
  tokenFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file, in addition to those of the system and of outbound.caFile. */
  caFile: maybe(kind.fileName()),
  /**
   * Address for notifications. host:port or URL, without /callback (CALLBACK_ADDRESS). A remote broker sends
   * notifications to it. Default: the address of the listener.
   */
  callbackUrl: maybe(kind.ownAddress()),
})
