/**
 * Settings of the plugins. They are in the one schema, so that all mistakes are told at once and one page has all of them; a
 * plugin gets its own section and no other. A section is called what its plugin is called.
 */
import * as v from 'valibot'
import * as kind from './kinds.ts'
import { maybe, section, setting } from './setting.ts'

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
      'Sent to a backend elsewhere as Bearer token instead of what clients send; its first line. Mode 0600.',
  }),
})

export const indexing = section('Indexing', {
  enabled: enabled('indexing'),
  port: port('off', 'Serves /ngsi-ld/v1/entities from the index, and /api/broker.'),
})

export const search = section('Search enabler', {
  enabled: enabled('search enabler'),
  port: port(8080, 'Serves GraphQL at /graphql and its IDE at /.'),
  backend: setting(v.union([kind.oneOf('mdr', 'ranking', 'indexing'), kind.brokerBase()]), 'mdr', {
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
  cors: setting(kind.flag(), true, {
    title: 'Pages from elsewhere',
    description:
      'Whether pages of other origins may ask (Access-Control-Allow-Origin: *), as with the originals.',
  }),
  version: maybe(kind.text(256), {
    title: 'Version label',
    description: 'What GET /version answers (VERSION). Left out: the version of the gateway.',
  }),
})
