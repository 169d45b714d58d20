/**
 * Settings of uplinks, which replicate entities of this gateway to other brokers. Settings that correspond to
 * members of an NGSI-LD subscription have the same names and meanings.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const names = setting(kind.listOf('names', 256, kind.text()), [])

const window = kind.groupOf('a group with cron and minutes', {
  /** Start. Minute, hour, day, month, weekday; local time. */
  cron: kind.cron(),
  /** Length. Requests in progress at the end of the window are completed. */
  minutes: kind.wholeNumber(1, limits.uplinkWindowMinutesMax.value, 'minutes'),
})

const budget = kind.groupOf('a group of bounds', {
  /** Maximum bytes of the backlog. Size in the local history. Default: limited by the history only. */
  bytes: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes')),
  /** Maximum observations of the backlog. Default: unlimited. */
  observations: maybe(kind.wholeNumber(1, 2 ** 50, 'observations')),
  /** Maximum age of the backlog. In hours. Default: unlimited. */
  hours: maybe(kind.above0('hours')),
  /**
   * Seconds between values of thinned history. If the backlog exceeds its budget, its oldest part keeps one
   * value per attribute and interval.
   */
  thinSeconds: setting(kind.seconds(), 60),
})

/** File of the header. Keyed by the name of the header. */
const headerFile = kind.fileName()

const uplink = kind.groupOf('a group with id and url', {
  /** Name. Identifies the uplink in status and commands. A new name creates a new uplink. */
  id: kind.label(),
  /** Address of the broker. Any NGSI-LD broker; /ngsi-ld/v1 is appended if missing. */
  url: kind.brokerBase(),
  /** Tenant at the broker. Default: its default tenant. */
  tenant: maybe(kind.text(64)),
  /**
   * Scope at the broker. A path such as /site-7, prefixed to the scopes of all sent entities, so that a
   * centre can distinguish sites. Default: scopes are unchanged.
   */
  scope: maybe(kind.scope()),
  /** Tenant here. Default: the default tenant. */
  sourceTenant: maybe(kind.text(64)),
  /** Types of entities. Default: all. Short names of `context`, or IRIs. */
  types: names,
  /** Ids of entities. Default: all of these types. */
  ids: names,
  /** Pattern of ids. Instead of ids. */
  idPattern: maybe(kind.text()),
  /** Query. Only entities that match it. */
  q: maybe(kind.text(8192)),
  /** Geo-query. Only matching entities: georel, geometry, coordinates, geoproperty, as in a subscription. */
  geoQ: maybe(v.unknown()),
  /** Scope query. Only entities in these scopes. */
  scopeQ: maybe(kind.text()),
  /** Watched attributes. Only changes of these are sent, unless `attributes` names others. */
  watchedAttributes: names,
  /** Sent attributes. Default: the watched ones, or all. */
  attributes: names,
  /** Context. URL of the @context of the names. Default: the core context. */
  context: maybe(kind.text(4096)),
  /**
   * Throttling of current values. Minimum seconds between two current values of an entity; values in between
   * are sent as history. Default: no throttling.
   */
  throttling: maybe(kind.seconds()),
  /** File of the token. Its first line is sent as a Bearer token. Mode 0600. */
  tokenFile: maybe(kind.fileName()),
  /** User name. Sent with the password, instead of a token. */
  username: maybe(kind.text()),
  /** File of the password. Its first line is the password. Mode 0600. */
  passwordFile: maybe(kind.fileName()),
  /** Further headers. The value is the first line of the file. Mode 0600. */
  headerFiles: setting(kind.mapOf('files, by name of a header', headerFile), {}),
  /**
   * Certificate authorities of the broker. PEM file, in addition to those of the system. Default:
   * outbound.caFile.
   */
  caFile: maybe(kind.fileName()),
  /**
   * Maximum observations per second. On average; current values take precedence over history. Default:
   * unlimited.
   */
  rate: maybe(kind.above0('observations per second')),
  /** Maximum bytes per second. Compressed, with headers. */
  bytesPerSecond: maybe(kind.above0('bytes per second')),
  /** Maximum bytes per day (UTC). Compressed, with headers; the count survives a restart. */
  bytesPerDay: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes')),
  /** Windows. Nothing is sent outside them. Default: always open. */
  windows: setting(kind.listOf('windows', 32, window), []),
  budget: v.optional(budget, {} as never),
  /** Paused. Nothing is sent while it is true; changes are sent afterwards. */
  isPaused: setting(kind.flag(), false),
})

/**
 * Uplinks. Brokers to which entities of this gateway are replicated, over links that may fail. Uplinks can
 * also be created as subscriptions.
 */
export const uplinks = setting(kind.listOf('uplinks', 16, uplink), [])
