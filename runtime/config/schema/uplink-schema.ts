/**
 * Settings of uplinks: brokers that are kept as this gateway is. What a subscription can say has the names of NGSI-LD and
 * means the same.
 */
import * as v from 'valibot'
import { limits } from '#base/limits/limits.ts'
import { about, maybe, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

const manyMax = 256
const names = (title: string, description: string) =>
  setting(kind.listOf('names', manyMax, kind.text()), [], { title, description })

const window = kind.groupOf('a group with cron and minutes', {
  cron: about(kind.cron(), { title: 'Begin', description: 'Minute, hour, day, month, weekday; local time.' }),
  minutes: about(kind.wholeNumber(1, limits.uplinkWindowMinutesMax.value, 'minutes'), {
    title: 'Length',
    description: 'What is under way at the end is brought to its end.',
  }),
})

const budget = kind.groupOf('a group of bounds', {
  bytes: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes'), {
    title: 'Most bytes that wait',
    description: 'As they are kept here. Left out: as many as the history has room for.',
  }),
  observations: maybe(kind.wholeNumber(1, 2 ** 50, 'observations'), {
    title: 'Most observations that wait',
    description: 'Left out: no bound.',
  }),
  hours: maybe(kind.above0('hours'), {
    title: 'Greatest age of observations that wait',
    description: 'In hours. Left out: no bound.',
  }),
  thinSeconds: setting(kind.seconds(), 60, {
    title: 'Seconds between values of thinned history',
    description:
      'When there is no room, of the oldest part one value of each attribute in so many seconds is left.',
  }),
})

const uplink = kind.groupOf('a group with id and url', {
  id: about(kind.label(), {
    title: 'Name',
    description: 'By which it is seen and held. A new name is a new uplink.',
  }),
  url: about(kind.brokerBase(), {
    title: 'Address of the broker',
    description: 'Any NGSI-LD broker; /ngsi-ld/v1 is added where it is left out.',
  }),
  tenant: maybe(kind.text(64), { title: 'Tenant there', description: 'Left out: its default tenant.' }),
  scope: maybe(kind.scope(), {
    title: 'Scope there',
    description:
      'A path such as /site-7, put before the scopes of all that goes up; what has none gets it alone. So a centre tells sites apart. Left out: scopes are as they are here.',
  }),
  sourceTenant: maybe(kind.text(64), { title: 'Tenant here', description: 'Left out: the default tenant.' }),
  types: names('Types of entities', 'Left out: all. Names in `context`, or whole.'),
  ids: names('Ids of entities', 'Left out: all of these types.'),
  idPattern: maybe(kind.text(), { title: 'Pattern of ids', description: 'Instead of ids.' }),
  q: maybe(kind.text(8192), { title: 'Query', description: 'Only entities that fulfil it.' }),
  geoQ: maybe(v.unknown(), {
    title: 'Place or area',
    description: 'Only entities there: georel, geometry, coordinates, geoproperty, as in a subscription.',
  }),
  scopeQ: maybe(kind.text(), { title: 'Query on scopes', description: 'Only entities in these scopes.' }),
  watchedAttributes: names('Names of attributes', 'Only these go up, unless `attributes` says otherwise.'),
  attributes: names('Names of attributes that go up', 'Left out: all, or the watched ones.'),
  context: maybe(kind.text(4096), {
    title: 'Context',
    description: 'Address of the @context that the names are in. Left out: the core context.',
  }),
  throttling: maybe(kind.seconds(), {
    title: 'Seconds between two current values of an entity',
    description: 'What comes in between goes up as history. Left out: all go up at once.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description: 'Sent as Bearer token; its first line. Mode 0600.',
  }),
  username: maybe(kind.text(), {
    title: 'User name',
    description: 'Sent with the password, instead of a token.',
  }),
  passwordFile: maybe(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line. Mode 0600.',
  }),
  headerFiles: setting(
    kind.mapOf(
      'files, by name of a header',
      about(kind.fileName(), { title: 'File of the header', description: 'By the name of the header.' }),
    ),
    {},
    {
      title: 'Further headers',
      description: 'Each has the first line of its file. Mode 0600.',
    },
  ),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities of the broker',
    description: 'PEM file, beside those of the system. Left out: as in outbound.caFile.',
  }),
  rate: maybe(kind.above0('observations per second'), {
    title: 'Most observations per second',
    description: 'On average; current values do not wait for history. Left out: as fast as it goes.',
  }),
  bytesPerSecond: maybe(kind.above0('bytes per second'), {
    title: 'Most bytes per second',
    description: 'Packed, with headers.',
  }),
  bytesPerDay: maybe(kind.wholeNumber(1, 2 ** 50, 'bytes'), {
    title: 'Most bytes on a day (UTC)',
    description: 'Packed, with headers; counted on over a restart.',
  }),
  windows: setting(kind.listOf('windows', 32, window), [], {
    title: 'Windows',
    description: 'Nothing is sent outside them. Left out: always.',
  }),
  budget: v.optional(budget, {} as never),
  isPaused: setting(kind.flag(), false, {
    title: 'Paused',
    description: 'Nothing is sent until this is taken away; what happens meanwhile goes up then.',
  }),
})

export const uplinks = setting(kind.listOf('uplinks', 16, uplink), [], {
  title: 'Uplinks',
  description:
    'Brokers that are kept as this gateway is, over ways that may be cut. Others can be made as subscriptions.',
})
