/** The OpenAPI description of the ranking, as GET /spec answers it. */

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
  description: 'Weights as a deep object: rankWeights[name]=0.4, once for each name.',
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
      'through relationships such as qoi:hasQuality.qoi:completeness. A `-` in front: small is good, p is 1 minus the ' +
      'value. Reckoned, each 0 to 1: @proximity, @freshness, @availability, also at the end of a path. ' +
      `At most ${limits.rankingTermsMax.value} terms.`,
    'qoi:hasQuality.qoi:completeness:0.6,@freshness:0.4',
  ),
  weights,
  parameter(
    'normalise',
    { type: 'string', enum: ['none', 'minmax'], default: 'none' },
    'minmax: a value counts by its place between the least and the greatest one of all candidates.',
  ),
  parameter(
    'explain',
    { type: 'boolean', default: false },
    'Whether each score has the share of each term, as its sub-property urn:selvedge:ns:rankTerms.',
  ),
  parameter(
    'rankPoint',
    { type: 'string' },
    'Where @proximity is measured from: longitude,latitude. Left out: the point of georel=near.',
    '8.68,49.41',
  ),
  parameter('rankDistance', { ...number, default: 1000 }, 'Metres at which @proximity is one half.'),
  parameter(
    'rankAge',
    { ...number, default: 3600 },
    'Seconds at which @freshness is one half, and between observations where no update interval is told.',
  ),
]

const text = { type: 'string' }
const query = [
  parameter('type', text, 'Entity types.', 'iot-stream:IotStream'),
  ...['id', 'idPattern', 'attrs', 'q', 'georel', 'geometry', 'coordinates', 'geoproperty', 'options'].map(
    (name) => parameter(name, text, 'As in NGSI-LD; for the backend.'),
  ),
  parameter(
    'limit',
    { type: 'integer', default: limits.pageDefault.value, maximum: limits.pageMax.value },
    'Entities of the ranked list in one answer.',
  ),
  parameter('offset', { type: 'integer', default: 0 }, 'Entities of the ranked list to skip.'),
  parameter(
    'count',
    { type: 'boolean' },
    'Whether NGSILD-Results-Count tells how many candidates there are.',
  ),
]

export const description: object = {
  openapi: '3.0.3',
  info: {
    title: 'Ranking',
    version,
    description:
      'NGSI-LD entities in the order of r = w1*p1 + ... + wn*pn over properties that the client names. The score is ' +
      'the Property http://iotcrawler.eu/rankScore of each entity. What has no number counts 0 and is told in NGSILD-Warning.',
  },
  // Relative to where this description was read.
  servers: [{ url: '.' }],
  paths: {
    '/ngsi-ld/v1/entities': {
      get: {
        operationId: 'queryRankedEntities',
        summary: 'Entities, ranked where there are weights',
        parameters: [...ranking, ...query],
        responses: {
          200: {
            description: 'Entities, the best first; without weights as the backend answers them.',
            content: { 'application/json': { schema: { type: 'array', items: { type: 'object' } } } },
          },
          400: problem('A weight or parameter that cannot be used, or what the backend refuses.'),
          403: problem(`More than ${limits.rankingCandidatesMax.value} candidates.`),
          500: problem('The backend answered what cannot be read.'),
          502: problem('The backend answered more than is taken.'),
          503: problem('Too many ranked queries at once.'),
          504: problem('The backend did not answer.'),
        },
      },
    },
    '/ngsi-ld/v1/entities/{id}': {
      get: {
        operationId: 'retrieveEntity',
        summary: 'One entity, as the backend answers it',
        parameters: [{ name: 'id', in: 'path', required: true, schema: text }],
        responses: { 200: { description: 'The entity.' }, 404: problem('There is none.') },
      },
    },
    '/api/health': {
      get: { operationId: 'health', summary: 'Whether it runs', responses: { 200: { description: 'UP' } } },
    },
  },
}
