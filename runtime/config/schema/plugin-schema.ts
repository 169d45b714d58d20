/**
 * Settings of the plugins. They are in the one schema, so that all mistakes are told at once and one page has all of them; a
 * plugin gets its own section and no other. A section is called what its plugin is called.
 */

import { about, maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

/** Sections of the settings that are plugins. */
export const pluginNames = ['indexing', 'ranking', 'search'] as const
export type PluginName = (typeof pluginNames)[number]

const enabled = (part: string) =>
  setting(kind.flag(), true, { title: 'Whether it runs', description: `false: there is no ${part} here.` })

const port = (byDefault: number | 'off', serves: string) =>
  setting(kind.listenPort(), byDefault, {
    title: 'Port of its own',
    description: `${serves} Also reached under its name on the main port, whatever this says.`,
  })

export const ranking = section('Ranking', {
  enabled: enabled('ranking'),
  port: port(3003, 'Serves /ngsi-ld/v1/entities with weights.'),
  backend: setting(kind.backend('indexing', 'mdr'), 'indexing', {
    title: 'What is ranked',
    description: 'indexing or mdr: of this gateway. An address: any NGSI-LD broker (INDEXER_URL).',
  }),
  timeoutMs: setting(kind.wholeNumber(100, 600_000, 'ms'), 10_000, {
    title: 'Patience with the backend',
    description: 'For one ranked list, all pages together. Beyond it the answer is 504.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description:
      'Sent as Bearer token to a backend elsewhere, which never gets credentials of clients; its first line. Mode 0600.',
  }),
})

const identity = kind.groupOf('a group with url, name and passwordFile', {
  url: about(kind.baseUrl(), {
    title: 'Identity manager',
    description: 'Its address, in front of /v1/auth/tokens.',
  }),
  name: about(kind.text(256), { title: 'Name', description: 'By which it knows this gateway.' }),
  passwordFile: about(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line. Mode 0600.',
  }),
})

const indexed = kind.groupOf('a group with url', {
  url: about(kind.baseUrl(), {
    title: 'Address',
    description: 'Of an NGSI-LD broker, in front of /ngsi-ld/v1.',
  }),
  tenant: maybe(kind.label(), { title: 'Tenant there', description: 'Left out: its default tenant.' }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description: 'Sent as Bearer token; its first line. Mode 0600. Read again for each request.',
  }),
  identity: maybe(identity, {
    title: 'Who gives tokens',
    description: 'An identity manager; its tokens are sent as X-Auth-Token and renewed.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities',
    description: 'PEM file of those who vouch for it, beside those of the system and of outbound.caFile.',
  }),
})

export const indexing = section('Indexing', {
  enabled: enabled('indexing'),
  port: port('off', 'Serves /ngsi-ld/v1/entities from the index, and /api/broker.'),
  callbackUrl: maybe(kind.baseUrl(), {
    title: 'Address for notifications',
    description:
      'Where registered brokers notify of changes, in front of /api/notification (INDEXER_HOST). Left out: the address of the listener.',
  }),
  brokers: setting(kind.listOf('brokers', 64, indexed), [], {
    title: 'Registered brokers',
    description: 'Indexed beside this gateway and beside those registered by POST /api/broker.',
  }),
  crawl: setting(kind.cron(), '17 3 * * *', {
    title: 'When registered brokers are read anew',
    description: 'What their notifications did not tell is found then.',
  }),
  pagesPerSecond: setting(kind.above0('pages'), 5, {
    title: 'Pages per second',
    description: 'Most that a broker is asked while it is read.',
  }),
  learn: setting(kind.flag(), false, {
    title: 'Learn brokers from registrations',
    description: 'Whether brokers that context source registrations name are indexed, too.',
  }),
})

export const search = section('Search enabler', {
  enabled: enabled('search enabler'),
  port: port(8080, 'Serves GraphQL at /graphql and its IDE at /.'),
  backend: setting(kind.backend('mdr', 'ranking', 'indexing'), 'mdr', {
    title: 'What is searched',
    description:
      'mdr, ranking or indexing: of this gateway. An address: any NGSI-LD broker (PLATFORM_ORCHESTRATOR_URL).',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token for the backend',
    description: 'Sent as Bearer token to a backend elsewhere; its first line. Mode 0600.',
  }),
  timeoutMs: setting(kind.wholeNumber(100, 30_000, 'ms'), 10_000, {
    title: 'Patience with the backend',
    description: 'For one of its answers; beyond it the fields concerned are errors.',
  }),
  schemaFolder: maybe(kind.fileName(), {
    title: 'Folder of more schemas',
    description: 'Files *.graphqls and *.graphql there add types and queries.',
  }),
  introspection: setting(kind.flag(), true, {
    title: 'Introspection',
    description: 'Whether clients may ask for the schema; the IDE needs it for completion and documents.',
  }),
  cors: setting(kind.flag(), false, {
    title: 'Pages from elsewhere',
    description:
      'Whether pages of other origins may ask (Access-Control-Allow-Origin: *), as the originals let them.',
  }),
  version: maybe(kind.text(256), {
    title: 'Version label',
    description: 'What GET /version answers (VERSION). Left out: the version of the gateway.',
  }),
})
