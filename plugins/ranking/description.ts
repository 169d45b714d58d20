/** The OpenAPI description of the ranking, served at GET /spec. */

import { limits } from '#base/limits/limits.ts'
import { version } from '#base/register/version.ts'

const problem = (detail: string): object => ({
  description: detail,
  content: {
    'application/json': {
      schema: {
        type: 'object',
        properties: { type: { type: 'string' }, title: { type: 'string' }, detail: { type: 'string' } },
      },
    },
  },
})

const parameter = (name: string, schema: object, detail: string, example?: unknown): object => ({
  name,
  in: 'query',
  required: false,
  description: detail,
  schema,
  ...(example === undefined ? {} : { example }),
})

const number = { type: 'number' }
const weights = {
  name: 'rankWeights',
  in: 'query',
  required: false,
  description: 'Weights as a deep object: rankWeights[name]=0.4, once per name.',
  style: 'deepObject',
  explode: true,
  schema: { type: 'object', additionalProperties: number },
  example: { completeness: 0.5, timeliness: 0.2, plausibility: 0.1, artificiality: 0.1, concordance: 0.1 },
}

const ranking = [
  parameter(
    'weights',
    { type: 'string' },
    'Names and weights: `name:0.4,other:0.6` or a JSON object. A name is short, prefixed or a full IRI, or a path ' +
      'through relationships such as qoi:hasQuality.qoi:completeness. A `-` in front means that small values are good: p is 1 minus the ' +
      'value. Computed criteria, each 0 to 1: @proximity, @freshness, @availability, also at the end of a path. ' +
      `At most ${limits.rankingTermsMax.value} terms.`,
    'qoi:hasQuality.qoi:completeness:0.6,@freshness:0.4',
  ),
  weights,
  parameter(
    'normalise',
    { type: 'string', enum: ['none', 'minmax'], default: 'none' },
    'minmax: values are scaled to 0 to 1 between the minimum and maximum of all candidates.',
  ),
  parameter(
    'explain',
    { type: 'boolean', default: false },
    'Whether each score lists the share of each term in its sub-property urn:selvedge:ns:rankTerms.',
  ),
  parameter(
    'rankPoint',
    { type: 'string' },
    'Point for @proximity: longitude,latitude. Default: the point of georel=near.',
    '8.68,49.41',
  ),
  parameter('rankDistance', { ...number, default: 1000 }, 'Metres at which @proximity is one half.'),
  parameter(
    'rankAge',
    { ...number, default: 3600 },
    'Age in seconds at which @freshness is one half; also the expected interval of streams without an update interval.',
  ),
]

const text = { type: 'string' }
const query = [
  parameter('type', text, 'Entity types.', 'iot-stream:IotStream'),
  ...['id', 'idPattern', 'attrs', 'q', 'georel', 'geometry', 'coordinates', 'geoproperty', 'options'].map(
    (name) => parameter(name, text, 'As in NGSI-LD; sent to the backend.'),
  ),
  parameter(
    'limit',
    { type: 'integer', default: limits.pageDefault.value, maximum: limits.pageMax.value },
    'Entities of the ranked list per response.',
  ),
  parameter('offset', { type: 'integer', default: 0 }, 'Entities of the ranked list to skip.'),
  parameter('count', { type: 'boolean' }, 'Whether NGSILD-Results-Count has the number of candidates.'),
]

export const description: object = {
  openapi: '3.0.3',
  info: {
    title: 'Ranking',
    version,
    description:
      'NGSI-LD entities ordered by r = w1*p1 + ... + wn*pn over properties named by the client. The score is ' +
      'the Property http://iotcrawler.eu/rankScore of each entity. Missing values count as 0 and are listed in NGSILD-Warning.',
  },
  // Relative to the address of this description.
  servers: [{ url: '.' }],
  paths: {
    '/ngsi-ld/v1/entities': {
      get: {
        operationId: 'queryRankedEntities',
        summary: 'Entities, ranked if weights are given',
        parameters: [...ranking, ...query],
        responses: {
          200: {
            description: 'Entities, the best first; without weights, the unchanged response of the backend.',
            content: { 'application/json': { schema: { type: 'array', items: { type: 'object' } } } },
          },
          400: problem('An invalid weight or parameter, or a rejection by the backend.'),
          403: problem(`More than ${limits.rankingCandidatesMax.value} candidates.`),
          500: problem('The response of the backend cannot be read.'),
          502: problem('The response of the backend is too large.'),
          503: problem('Too many ranked queries at once.'),
          504: problem('The backend did not answer.'),
        },
      },
    },
    '/ngsi-ld/v1/entities/{id}': {
      get: {
        operationId: 'retrieveEntity',
        summary: 'One entity, as the backend returns it',
        parameters: [{ name: 'id', in: 'path', required: true, schema: text }],
        responses: { 200: { description: 'The entity.' }, 404: problem('No such entity.') },
      },
    },
    '/api/health': {
      get: {
        operationId: 'health',
        summary: 'Show that the ranking runs',
        responses: { 200: { description: 'UP' } },
      },
    },
  },
}
