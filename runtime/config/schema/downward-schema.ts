/**
 * Settings of downward access by a centre: registrations of this gateway at other brokers, tunnels to
 * centres, and copies of entities of other brokers.
 */

import { maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const manyMax = 256

/** Address and credentials of the centre. */
const centre = {
  /** Address of the centre. Any NGSI-LD broker; /ngsi-ld/v1 is appended if missing. */
  url: kind.brokerBase(),
  /**
   * File of the token for the centre. Its first line is sent as a Bearer token. Mode 0600. Read again for
   * each request.
   */
  tokenFile: maybe(kind.fileName()),
  /** Tenant at the centre. Default: its default tenant. */
  tenant: maybe(kind.text(64)),
}

const registered = kind.groupOf('a group with url and types', {
  /** Name. Part of the id of the registration. Entries for the same centre need different names. */
  name: setting(kind.text(64), 'site'),
  ...centre,
  /**
   * Mode. inclusive: this gateway is one of several sources. auxiliary: it complements other sources, whose
   * data takes precedence. redirect: it holds these entities instead of the centre. exclusive: it alone holds
   * these attributes of these ids.
   */
  mode: setting(kind.oneOf('inclusive', 'auxiliary', 'redirect', 'exclusive'), 'inclusive'),
  /** Types of entities. Short names of `context`, or IRIs. */
  types: kind.filledListOf('types', manyMax, kind.text()),
  /** Ids of entities. Default: all of these types. */
  ids: setting(kind.listOf('ids', manyMax, kind.text()), []),
  /** Pattern of ids. Instead of ids. */
  idPattern: maybe(kind.text()),
  /** Names of properties. If neither properties nor relationships are given: all attributes. */
  properties: setting(kind.listOf('names', manyMax, kind.text()), []),
  /** Names of relationships. Like properties. */
  relationships: setting(kind.listOf('names', manyMax, kind.text()), []),
  /** Context. URL of the @context of the names. Default: the core context. */
  context: maybe(kind.text()),
  /** Location. Location of the registered entities, as GeoJSON. */
  location: maybe(kind.geometry()),
  /** Operations. Operations that the centre may forward, as in GS CIM 009, 4.20. Default: federationOps. */
  operations: setting(kind.listOf('operations', 64, kind.text(64)), []),
  /** Address of this gateway for the centre. Default: http.publicUrl. */
  endpoint: maybe(kind.httpUrl()),
  /**
   * Reached through a tunnel. Uses the tunnel to the same centre instead of an address; `tunnels` must have
   * an entry for it.
   */
  tunnel: setting(kind.flag(), false),
  /**
   * File of the token for this gateway. The registration contains this token; the centre sends it with its
   * requests. Mode 0600.
   */
  sourceTokenFile: maybe(kind.fileName()),
  /** Tenant here. Tenant of the registered entities. Default: the default tenant. */
  sourceTenant: maybe(kind.text(64)),
  /**
   * Lifetime of the registration. The registration expires at the centre this long after its last renewal.
   */
  expirySeconds: setting(kind.wholeNumber(5, 31_536_000, 'seconds'), 3600),
  /**
   * Renewal interval. A registration that the centre lost is created again within this time. Default: a third
   * of the lifetime.
   */
  refreshSeconds: maybe(kind.wholeNumber(1, 31_536_000, 'seconds')),
})

/**
 * Registrations at other brokers. Keeps this gateway registered there as a context source. Removing an entry
 * deletes the registration.
 */
export const register = setting(kind.listOf('registrations', 16, registered), [])

const tunnel = kind.groupOf('a group with url', {
  /** Address of the centre. Any NGSI-LD broker; /ngsi-ld/v1 is appended if missing. */
  url: centre.url,
  /**
   * File of the token for the centre. Its first line is sent as a Bearer token. Mode 0600. Read again for
   * each request.
   */
  tokenFile: centre.tokenFile,
  /**
   * Rights of the centre. read: current and past entities. subscribe: create, change and delete its own
   * subscriptions; without read, only the centre may be notified. write: all other NGSI-LD operations,
   * including registrations and subscriptions to them. All clients of the centre have these rights here, in
   * all tenants.
   */
  allow: setting(kind.listOf('rights', 3, kind.oneOf('read', 'subscribe', 'write')), ['read', 'subscribe']),
  /**
   * Keep-alive interval. Must be shorter than the idle timeout of routers on the path. A dead connection is
   * detected within three intervals.
   */
  keepAliveSeconds: setting(kind.wholeNumber(1, 3600, 'seconds'), 20),
})

/**
 * Tunnels to centres. Open connections to centres (Selvedge) that cannot connect to this gateway because it
 * is behind NAT. The centre reaches registered entities through them.
 */
export const tunnels = setting(kind.listOf('tunnels', 16, tunnel), [])

const copied = kind.groupOf('a group with name, url and types', {
  /** Name. Identifies the copies; must be unique. */
  name: kind.text(64),
  ...centre,
  /** Types of entities. Short names of `context`, or IRIs. */
  types: kind.filledListOf('types', manyMax, kind.text()),
  /** Ids of entities. Default: all of these types. */
  ids: setting(kind.listOf('ids', manyMax, kind.text()), []),
  /** Pattern of ids. Instead of ids. */
  idPattern: maybe(kind.text()),
  /** Query. Only entities that match it, as parameter q of NGSI-LD. */
  q: maybe(kind.text()),
  /** Context. URL of the @context of the names. Default: the core context. */
  context: maybe(kind.text()),
  /**
   * Load interval. A Selvedge centre also sends changes at once. With other brokers, changes and deletions
   * are detected at this interval.
   */
  everySeconds: setting(kind.wholeNumber(1, 86_400, 'seconds'), 300),
})

/**
 * Copies of entities of other brokers. Stored here as entities and available while the centre is unreachable.
 * Local entities are never overwritten. A copy is deleted when its original is deleted or no longer selected.
 */
export const copies = setting(kind.listOf('copies', 16, copied), [])
