/** Settings of the orchestrator; a section of the one schema. */
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const amqp = section('AMQP server of the orchestrator', {
  /**
   * AMQP server. host[:port] or amqp[s]://host[:port] (PLATFORM_AMQP_HOST). Notifications are published
   * there. Default: none.
   */
  host: maybe(kind.serverAddress('amqp')),
  /** User name. Default: guest. */
  username: maybe(kind.text(256)),
  /** File of the password. Its first line is the password. Mode 0600. Read again for each connection. */
  passwordFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file for amqps, in addition to those of the system. */
  caFile: maybe(kind.fileName()),
})

const cache = section('Cache of the orchestrator', {
  /**
   * Redis server. host[:port] or redis[s]://host[:port] (PLATFORM_CACHE_HOST). Default: none; the cache is in
   * memory only.
   */
  host: maybe(kind.serverAddress('redis')),
  /** User name. Default: none is sent. */
  username: maybe(kind.text(256)),
  /** File of the password. Its first line is the password. Mode 0600. */
  passwordFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file for rediss, in addition to those of the system. */
  caFile: maybe(kind.fileName()),
  /**
   * Age of responses of another broker. How long they are used; 0 caches none. Those of this gateway are used
   * while nothing changes.
   */
  maxAgeMs: setting(kind.wholeNumber(0, 3_600_000, 'ms'), 2_000),
})

export const orchestrator = section('Orchestrator', {
  /** Enabled. false: the orchestrator is not started. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves /ngsi-ld, /, and /version (HTTP_SERVER_PORT). The plugin is always available under its
   * name on the main port.
   */
  port: setting(kind.listenPort(), 3001),
  /** Host of that port. Name or address to bind to. Default: host. */
  host: maybe(kind.hostName()),
  /**
   * Broker. mdr: this gateway; or the address of any NGSI-LD broker (NGSILD_BROKER_URL), with or without
   * /ngsi-ld or /ngsi-ld/v1.
   */
  broker: setting(kind.backend('mdr'), 'mdr'),
  /**
   * Ranking. ranking: that of this gateway; or the address of a ranking component (RANKING_COMPONENT_URL). It
   * gets every GET of entities with weights.
   */
  ranking: setting(kind.backend('ranking'), 'ranking'),
  /**
   * File of the token for that broker. Its first line is sent as a Bearer token when subscriptions are
   * checked and restored there; requests of clients have their own. Mode 0600. Read again for each request.
   */
  tokenFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file for both, in addition to those of outbound.caFile. */
  caFile: maybe(kind.fileName()),
  /** Timeout. Time until a response of the broker begins. Beyond it the response is 504. */
  timeoutMs: setting(kind.wholeNumber(100, 600_000, 'ms'), 30_000),
  /**
   * Address for notifications. The broker sends notifications to it (HTTP_REFERENCE_URL). Default: the
   * address of the listener, with /notify.
   */
  referenceUrl: maybe(kind.callbackUrl()),
  /** AMQP server. Publishes notifications. */
  amqp,
  /** Cache. Stores responses. */
  cache,
  /** Version label. Response of GET /version (VERSION). Default: the version of the gateway. */
  version: maybe(kind.text(256)),
})
