/**
 * Settings of what goes between this gateway and a centre downward: where it registers itself, so that others ask it and
 * subscribe at it.
 */

import { about, maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const manyMax = 256

/** How the centre is reached. */
const centre = {
  url: about(kind.brokerBase(), {
    title: 'Address of the centre',
    description: 'Any NGSI-LD broker; /ngsi-ld/v1 is added where it is left out.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token for the centre',
    description: 'Sent as Bearer token; its first line. Mode 0600. Read again for each request.',
  }),
  tenant: maybe(kind.text(64), {
    title: 'Tenant at the centre',
    description: 'Left out: its default tenant.',
  }),
}

const registered = kind.groupOf('a group with url and types', {
  name: setting(kind.text(64), 'site', {
    title: 'Name',
    description: 'Part of the id of the registration. Entries for the same centre need different ones.',
  }),
  ...centre,
  mode: setting(kind.oneOf('inclusive', 'auxiliary', 'redirect', 'exclusive'), 'inclusive', {
    title: 'Mode',
    description:
      'inclusive: this gateway is one of those who know. auxiliary: it is asked, and others count more. redirect: it holds these entities instead of the centre. exclusive: it alone holds these attributes of these ids.',
  }),
  types: about(kind.filledListOf('types', manyMax, kind.text()), {
    title: 'Types of entities',
    description: 'Names in `context`, or whole.',
  }),
  ids: setting(kind.listOf('ids', manyMax, kind.text()), [], {
    title: 'Ids of entities',
    description: 'Left out: all of these types.',
  }),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  properties: setting(kind.listOf('names', manyMax, kind.text()), [], {
    title: 'Names of properties',
    description: 'Without properties and relationships: all attributes.',
  }),
  relationships: setting(kind.listOf('names', manyMax, kind.text()), [], {
    title: 'Names of relationships',
    description: 'As properties.',
  }),
  context: maybe(kind.text(), {
    title: 'Context',
    description: 'Address of the @context that the names are in. Left out: the core context.',
  }),
  location: maybe(kind.geometry(), {
    title: 'Place or area',
    description: 'Where what is registered lies, as GeoJSON.',
  }),
  operations: setting(kind.listOf('operations', 64, kind.text(64)), [], {
    title: 'Operations',
    description: 'What the centre may do here, as in GS CIM 009, 4.20. Left out: federationOps.',
  }),
  endpoint: maybe(kind.httpUrl(), {
    title: 'Address of this gateway for the centre',
    description: 'Left out: http.publicUrl.',
  }),
  tunnel: setting(kind.flag(), false, {
    title: 'Reached through a tunnel',
    description: 'Instead of an address: the tunnel to the same centre, which `tunnels` has to name.',
  }),
  sourceTokenFile: maybe(kind.fileName(), {
    title: 'File of the token for this gateway',
    description: 'Told to the centre in the registration, which sends it with what it asks. Mode 0600.',
  }),
  sourceTenant: maybe(kind.text(64), {
    title: 'Tenant here',
    description: 'Whose entities are registered. Left out: those of the default tenant.',
  }),
  expirySeconds: setting(kind.wholeNumber(5, 31_536_000, 'seconds'), 3600, {
    title: 'Life of the registration',
    description: 'So long after the gateway was heard of last, the centre forgets it.',
  }),
  refreshSeconds: maybe(kind.wholeNumber(1, 31_536_000, 'seconds'), {
    title: 'Time between two renewals',
    description: 'How soon a registration that the centre lost is made again. Left out: a third of its life.',
  }),
})

export const register = setting(kind.listOf('registrations', 16, registered), [], {
  title: 'Registrations at other brokers',
  description:
    'Keeps this gateway registered there as context source. What is removed here is removed there, too.',
})

const tunnel = kind.groupOf('a group with url', {
  url: centre.url,
  tokenFile: centre.tokenFile,
  allow: setting(kind.listOf('rights', 3, kind.oneOf('read', 'subscribe', 'write')), ['read', 'subscribe'], {
    title: 'What the centre may do',
    description:
      'read: what there is and was. subscribe: make, change and delete subscriptions of its own; without read, only the centre is notified. write: everything else of NGSI-LD, registrations and subscriptions to these too. Whoever may ask the centre may do as much here, in all tenants.',
  }),
  keepAliveSeconds: setting(kind.wholeNumber(1, 3600, 'seconds'), 20, {
    title: 'Time between two signs of life',
    description:
      'Less than routers on the way forget a silent connection after. A dead one is noticed after three times as long at most.',
  }),
})

export const tunnels = setting(kind.listOf('tunnels', 16, tunnel), [], {
  title: 'Tunnels to centres',
  description:
    'Held open to Selvedges that cannot connect to this gateway, because it is behind NAT: they reach what is registered there through them.',
})

const copied = kind.groupOf('a group with name, url and types', {
  name: about(kind.text(64), {
    title: 'Name',
    description: 'Whose copies they are; another one for each entry.',
  }),
  ...centre,
  types: about(kind.filledListOf('types', manyMax, kind.text()), {
    title: 'Types of entities',
    description: 'Names in `context`, or whole.',
  }),
  ids: setting(kind.listOf('ids', manyMax, kind.text()), [], {
    title: 'Ids of entities',
    description: 'Left out: all of these types.',
  }),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  q: maybe(kind.text(), { title: 'Query', description: 'Which of them, as parameter q of NGSI-LD.' }),
  context: maybe(kind.text(), {
    title: 'Context',
    description: 'Address of the @context that the names are in. Left out: the core context.',
  }),
  everySeconds: setting(kind.wholeNumber(1, 86_400, 'seconds'), 300, {
    title: 'Time between two loads',
    description:
      'A centre that is a Selvedge tells what changes at once; others are asked so often. What is gone there is noticed at the latest then.',
  }),
})

export const copies = setting(kind.listOf('copies', 16, copied), [], {
  title: 'Copies of entities of other brokers',
  description:
    'Kept here as entities, also while the centre is away. What was here by itself is left alone; what is gone there, or is not wanted any more, goes here.',
})
