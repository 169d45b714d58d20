/**
 * Settings of uplinks, which replicate entities of this gateway to other brokers. Settings that correspond to
 * members of an NGSI-LD subscription have the same names and meanings.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { about, maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const manyMax = 256
const names = (title: string, description: string) =>
  setting(kind.listOf('names', manyMax, kind.text()), [], { title, description })

const window = kind.groupOf('a group with cron and minutes', {
  cron: about(kind.cron(), { title: 'Start', description: 'Minute, hour, day, month, weekday; local time.' }),
  minutes: about(kind.wholeNumber(1, limits.uplinkWindowMinutesMax.value, 'minutes'), {
    title: 'Length',
    description: 'Requests in progress at the end of the window are completed.',
  }),
})

const budget = kind.groupOf('a group of bounds', {
  bytes: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes'), {
    title: 'Maximum bytes of the backlog',
    description: 'Size in the local history. Default: limited by the history only.',
  }),
  observations: maybe(kind.wholeNumber(1, 2 ** 50, 'observations'), {
    title: 'Maximum observations of the backlog',
    description: 'Default: unlimited.',
  }),
  hours: maybe(kind.above0('hours'), {
    title: 'Maximum age of the backlog',
    description: 'In hours. Default: unlimited.',
  }),
  thinSeconds: setting(kind.seconds(), 60, {
    title: 'Seconds between values of thinned history',
    description:
      'If the backlog exceeds its budget, its oldest part keeps one value per attribute and interval.',
  }),
})

const uplink = kind.groupOf('a group with id and url', {
  id: about(kind.label(), {
    title: 'Name',
    description: 'Identifies the uplink in status and commands. A new name creates a new uplink.',
  }),
  url: about(kind.brokerBase(), {
    title: 'Address of the broker',
    description: 'Any NGSI-LD broker; /ngsi-ld/v1 is appended if missing.',
  }),
  tenant: maybe(kind.text(64), {
    title: 'Tenant at the broker',
    description: 'Default: its default tenant.',
  }),
  scope: maybe(kind.scope(), {
    title: 'Scope at the broker',
    description:
      'A path such as /site-7, prefixed to the scopes of all sent entities, so that a centre can distinguish sites. Default: scopes are unchanged.',
  }),
  sourceTenant: maybe(kind.text(64), { title: 'Tenant here', description: 'Default: the default tenant.' }),
  types: names('Types of entities', 'Default: all. Short names of `context`, or IRIs.'),
  ids: names('Ids of entities', 'Default: all of these types.'),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  q: maybe(kind.text(8192), { title: 'Query', description: 'Only entities that match it.' }),
  geoQ: maybe(v.unknown(), {
    title: 'Geo-query',
    description: 'Only matching entities: georel, geometry, coordinates, geoproperty, as in a subscription.',
  }),
  scopeQ: maybe(kind.text(), { title: 'Scope query', description: 'Only entities in these scopes.' }),
  watchedAttributes: names(
    'Watched attributes',
    'Only changes of these are sent, unless `attributes` names others.',
  ),
  attributes: names('Sent attributes', 'Default: the watched ones, or all.'),
  context: maybe(kind.text(4096), {
    title: 'Context',
    description: 'URL of the @context of the names. Default: the core context.',
  }),
  throttling: maybe(kind.seconds(), {
    title: 'Throttling of current values',
    description:
      'Minimum seconds between two current values of an entity; values in between are sent as history. Default: no throttling.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description: 'Its first line is sent as a Bearer token. Mode 0600.',
  }),
  username: maybe(kind.text(), {
    title: 'User name',
    description: 'Sent with the password, instead of a token.',
  }),
  passwordFile: maybe(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line is the password. Mode 0600.',
  }),
  headerFiles: setting(
    kind.mapOf(
      'files, by name of a header',
      about(kind.fileName(), {
        title: 'File of the header',
        description: 'Keyed by the name of the header.',
      }),
    ),
    {},
    {
      title: 'Further headers',
      description: 'The value is the first line of the file. Mode 0600.',
    },
  ),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities of the broker',
    description: 'PEM file, in addition to those of the system. Default: outbound.caFile.',
  }),
  rate: maybe(kind.above0('observations per second'), {
    title: 'Maximum observations per second',
    description: 'On average; current values take precedence over history. Default: unlimited.',
  }),
  bytesPerSecond: maybe(kind.above0('bytes per second'), {
    title: 'Maximum bytes per second',
    description: 'Compressed, with headers.',
  }),
  bytesPerDay: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes'), {
    title: 'Maximum bytes per day (UTC)',
    description: 'Compressed, with headers; the count survives a restart.',
  }),
  windows: setting(kind.listOf('windows', 32, window), [], {
    title: 'Windows',
    description: 'Nothing is sent outside them. Default: always open.',
  }),
  budget: v.optional(budget, {} as never),
  isPaused: setting(kind.flag(), false, {
    title: 'Paused',
    description: 'Nothing is sent while it is true; changes are sent afterwards.',
  }),
})

export const uplinks = setting(kind.listOf('uplinks', 16, uplink), [], {
  title: 'Uplinks',
  description:
    'Brokers to which entities of this gateway are replicated, over links that may fail. Uplinks can also be created as subscriptions.',
})
