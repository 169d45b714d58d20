/**
 * Settings of the plugins. They are part of the one schema, so that all mistakes are reported together and
 * one page documents all settings. A section has the name of its plugin, and a plugin receives only its own
 * section.
 */

import { about, maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

/** Names of the plugins and of their sections. */
export const pluginNames = ['indexing', 'ranking', 'search'] as const
export type PluginName = (typeof pluginNames)[number]

const enabled = (part: string) =>
  setting(kind.flag(), true, { title: 'Enabled', description: `false: the ${part} is not started.` })

const port = (byDefault: number | 'off', serves: string) =>
  setting(kind.listenPort(), byDefault, {
    title: 'Own port',
    description: `${serves} The plugin is always available under its name on the main port.`,
  })

export const ranking = section('Ranking', {
  enabled: enabled('ranking plugin'),
  port: port(3003, 'Serves /ngsi-ld/v1/entities with weights.'),
  backend: setting(kind.backend('indexing', 'mdr'), 'indexing', {
    title: 'Ranked broker',
    description: 'indexing or mdr of this gateway, or the address of any NGSI-LD broker (INDEXER_URL).',
  }),
  timeoutMs: setting(kind.wholeNumber(100, 600_000, 'ms'), 10_000, {
    title: 'Backend timeout',
    description: 'For one ranked list, all pages together. Beyond it the response is 504.',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description:
      'Its first line is sent as a Bearer token to an external backend, which never receives credentials of clients. Mode 0600.',
  }),
})

const identity = kind.groupOf('a group with url, name and passwordFile', {
  url: about(kind.baseUrl(), {
    title: 'Identity manager',
    description: 'Its address, without /v1/auth/tokens.',
  }),
  name: about(kind.text(256), { title: 'User name', description: 'User name of this gateway there.' }),
  passwordFile: about(kind.fileName(), {
    title: 'File of the password',
    description: 'Its first line is the password. Mode 0600.',
  }),
})

const indexed = kind.groupOf('a group with url', {
  url: about(kind.baseUrl(), {
    title: 'Address',
    description: 'Address of an NGSI-LD broker, without /ngsi-ld/v1.',
  }),
  tenant: maybe(kind.label(), { title: 'Tenant at the broker', description: 'Default: its default tenant.' }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token',
    description: 'Its first line is sent as a Bearer token. Mode 0600. Read again for each request.',
  }),
  identity: maybe(identity, {
    title: 'Token issuer',
    description: 'An identity manager; its tokens are sent as X-Auth-Token and renewed.',
  }),
  caFile: maybe(kind.fileName(), {
    title: 'Certificate authorities',
    description: 'PEM file, in addition to those of the system and of outbound.caFile.',
  }),
})

export const indexing = section('Indexing', {
  enabled: enabled('indexing plugin'),
  port: port('off', 'Serves /ngsi-ld/v1/entities from the index, and /api/broker.'),
  callbackUrl: maybe(kind.baseUrl(), {
    title: 'Address for notifications',
    description:
      'Registered brokers send notifications to it; without /api/notification (INDEXER_HOST). Default: the address of the listener.',
  }),
  brokers: setting(kind.listOf('brokers', 64, indexed), [], {
    title: 'Registered brokers',
    description: 'Indexed in addition to this gateway and to brokers registered by POST /api/broker.',
  }),
  crawl: setting(kind.cron(), '17 3 * * *', {
    title: 'When registered brokers are read again',
    description: 'Finds changes that notifications missed.',
  }),
  pagesPerSecond: setting(kind.above0('pages'), 5, {
    title: 'Pages per second',
    description: 'Maximum request rate while a broker is read.',
  }),
  learn: setting(kind.flag(), false, {
    title: 'Learn brokers from registrations',
    description: 'Whether brokers named by context source registrations are indexed as well.',
  }),
})

export const search = section('Search enabler', {
  enabled: enabled('search enabler'),
  port: port(8080, 'Serves GraphQL at /graphql and its IDE at /.'),
  backend: setting(kind.backend('mdr', 'ranking', 'indexing'), 'mdr', {
    title: 'Searched broker',
    description:
      'mdr, ranking or indexing of this gateway, or the address of any NGSI-LD broker (PLATFORM_ORCHESTRATOR_URL).',
  }),
  tokenFile: maybe(kind.fileName(), {
    title: 'File of the token for the backend',
    description: 'Its first line is sent as a Bearer token to an external backend. Mode 0600.',
  }),
  timeoutMs: setting(kind.wholeNumber(100, 30_000, 'ms'), 10_000, {
    title: 'Backend timeout',
    description: 'For one response; beyond it the affected fields are errors.',
  }),
  schemaFolder: maybe(kind.fileName(), {
    title: 'Folder of additional schemas',
    description: 'Files *.graphqls and *.graphql there add types and queries.',
  }),
  introspection: setting(kind.flag(), true, {
    title: 'Introspection',
    description: 'Whether clients may query the schema; the IDE needs it for completion and documentation.',
  }),
  cors: setting(kind.flag(), false, {
    title: 'Pages of other origins',
    description:
      'Whether pages of other origins may send requests (Access-Control-Allow-Origin: *), as the original components allow.',
  }),
  version: maybe(kind.text(256), {
    title: 'Version label',
    description: 'Response of GET /version (VERSION). Default: the version of the gateway.',
  }),
})
