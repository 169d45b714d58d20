/**
 * Settings of downward access by a centre: registrations of this gateway at other brokers, tunnels to
 * centres, and copies of entities of other brokers.
 */

import { about, maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const manyMax = 256

/** Address and credentials of the centre. */
const centre = {
  url: about(kind.brokerBase(), {
    title: 'Address of the centre',
    description: 'Any NGSI-LD broker; /ngsi-ld/v1 is appended if missing.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token for the centre',
    description: 'Its first line is sent as a Bearer token. Mode 0600. Read again for each request.',
  }),
  tenant: maybe(kind.text(64), {
    title: 'Tenant at the centre',
    description: 'Default: its default tenant.',
  }),
}

const registered = kind.groupOf('a group with url and types', {
  name: setting(kind.text(64), 'site', {
    title: 'Name',
    description: 'Part of the id of the registration. Entries for the same centre need different names.',
  }),
  ...centre,
  mode: setting(kind.oneOf('inclusive', 'auxiliary', 'redirect', 'exclusive'), 'inclusive', {
    title: 'Mode',
    description:
      'inclusive: this gateway is one of several sources. auxiliary: it complements other sources, whose data takes precedence. redirect: it holds these entities instead of the centre. exclusive: it alone holds these attributes of these ids.',
  }),
  types: about(kind.filledListOf('types', manyMax, kind.text()), {
    title: 'Types of entities',
    description: 'Short names of `context`, or IRIs.',
  }),
  ids: setting(kind.listOf('ids', manyMax, kind.text()), [], {
    title: 'Ids of entities',
    description: 'Default: all of these types.',
  }),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  properties: setting(kind.listOf('names', manyMax, kind.text()), [], {
    title: 'Names of properties',
    description: 'If neither properties nor relationships are given: all attributes.',
  }),
  relationships: setting(kind.listOf('names', manyMax, kind.text()), [], {
    title: 'Names of relationships',
    description: 'Like properties.',
  }),
  context: maybe(kind.text(), {
    title: 'Context',
    description: 'URL of the @context of the names. Default: the core context.',
  }),
  location: maybe(kind.geometry(), {
    title: 'Location',
    description: 'Location of the registered entities, as GeoJSON.',
  }),
  operations: setting(kind.listOf('operations', 64, kind.text(64)), [], {
    title: 'Operations',
    description: 'Operations that the centre may forward, as in GS CIM 009, 4.20. Default: federationOps.',
  }),
  endpoint: maybe(kind.httpUrl(), {
    title: 'Address of this gateway for the centre',
    description: 'Default: http.publicUrl.',
  }),
  tunnel: setting(kind.flag(), false, {
    title: 'Reached through a tunnel',
    description:
      'Uses the tunnel to the same centre instead of an address; `tunnels` must have an entry for it.',
  }),
  sourceTokenFile: maybe(kind.fileName(), {
    title: 'File of the token for this gateway',
    description: 'The registration contains this token; the centre sends it with its requests. Mode 0600.',
  }),
  sourceTenant: maybe(kind.text(64), {
    title: 'Tenant here',
    description: 'Tenant of the registered entities. Default: the default tenant.',
  }),
  expirySeconds: setting(kind.wholeNumber(5, 31_536_000, 'seconds'), 3600, {
    title: 'Lifetime of the registration',
    description: 'The registration expires at the centre this long after its last renewal.',
  }),
  refreshSeconds: maybe(kind.wholeNumber(1, 31_536_000, 'seconds'), {
    title: 'Renewal interval',
    description:
      'A registration that the centre lost is created again within this time. Default: a third of the lifetime.',
  }),
})

export const register = setting(kind.listOf('registrations', 16, registered), [], {
  title: 'Registrations at other brokers',
  description:
    'Keeps this gateway registered there as a context source. Removing an entry deletes the registration.',
})

const tunnel = kind.groupOf('a group with url', {
  url: centre.url,
  tokenFile: centre.tokenFile,
  allow: setting(kind.listOf('rights', 3, kind.oneOf('read', 'subscribe', 'write')), ['read', 'subscribe'], {
    title: 'Rights of the centre',
    description:
      'read: current and past entities. subscribe: create, change and delete its own subscriptions; without read, only the centre may be notified. write: all other NGSI-LD operations, including registrations and subscriptions to them. All clients of the centre have these rights here, in all tenants.',
  }),
  keepAliveSeconds: setting(kind.wholeNumber(1, 3600, 'seconds'), 20, {
    title: 'Keep-alive interval',
    description:
      'Must be shorter than the idle timeout of routers on the path. A dead connection is detected within three intervals.',
  }),
})

export const tunnels = setting(kind.listOf('tunnels', 16, tunnel), [], {
  title: 'Tunnels to centres',
  description:
    'Open connections to centres (Selvedge) that cannot connect to this gateway because it is behind NAT. The centre reaches registered entities through them.',
})

const copied = kind.groupOf('a group with name, url and types', {
  name: about(kind.text(64), {
    title: 'Name',
    description: 'Identifies the copies; must be unique.',
  }),
  ...centre,
  types: about(kind.filledListOf('types', manyMax, kind.text()), {
    title: 'Types of entities',
    description: 'Short names of `context`, or IRIs.',
  }),
  ids: setting(kind.listOf('ids', manyMax, kind.text()), [], {
    title: 'Ids of entities',
    description: 'Default: all of these types.',
  }),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  q: maybe(kind.text(), {
    title: 'Query',
    description: 'Only entities that match it, as parameter q of NGSI-LD.',
  }),
  context: maybe(kind.text(), {
    title: 'Context',
    description: 'URL of the @context of the names. Default: the core context.',
  }),
  everySeconds: setting(kind.wholeNumber(1, 86_400, 'seconds'), 300, {
    title: 'Load interval',
    description:
      'A Selvedge centre also sends changes at once. With other brokers, changes and deletions are detected at this interval.',
  }),
})

export const copies = setting(kind.listOf('copies', 16, copied), [], {
  title: 'Copies of entities of other brokers',
  description:
    'Stored here as entities and available while the centre is unreachable. Local entities are never overwritten. A copy is deleted when its original is deleted or no longer selected.',
})
