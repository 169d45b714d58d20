/**
 * Errors of the NGSI-LD API: how they are raised and what their body contains (GS CIM 009, 5.5.2 and 6.3.2;
 * RFC 7807). The error register defines codes and statuses; this file adds the ETSI names. Constructors
 * return the error, so that the `throw` is visible at the call.
 */
import { type ErrorCode, GatewayError } from '#base/register/errors.ts'
import { isObject, parsedJson } from './json.ts'
import { type ProfileRules, profiles } from './profile.ts'

/** Valid JSON, wrong data. `field` is the path of the invalid member, such as `speed.observedAt`. */
export const badRequestData = (detail: string, field?: string): GatewayError =>
  field === undefined
    ? new GatewayError('ngsi-ld.bad-request-data', detail)
    : new GatewayError('ngsi-ld.bad-request-data', `${field}: ${detail}`, { field })

/** Not JSON, an unknown parameter, or parameters that contradict each other. */
export const invalidRequest = (detail: string): GatewayError =>
  new GatewayError('ngsi-ld.invalid-request', detail)

export const notFound = (detail: string): GatewayError => new GatewayError('ngsi-ld.not-found', detail)

export const alreadyExists = (detail: string): GatewayError =>
  new GatewayError('ngsi-ld.already-exists', detail)

export const conflict = (detail: string): GatewayError => new GatewayError('ngsi-ld.conflict', detail)

export const tooManyResults = (detail: string): GatewayError =>
  new GatewayError('ngsi-ld.too-many-results', detail)

export const tooComplex = (detail: string): GatewayError => new GatewayError('ngsi-ld.too-complex', detail)

export const notSupported = (detail: string): GatewayError =>
  new GatewayError('ngsi-ld.not-supported', detail)

/** The NGSI-LD error type in a body (5.5.2); empty if the body contains none, such as an HTML page. */
export function problemTypeIn(text: string): string {
  const body = parsedJson(text)
  const type = isObject(body) ? body['type'] : undefined
  return typeof type === 'string' && type.startsWith('https://uri.etsi.org/ngsi-ld/errors/') ? type : ''
}

/** Body of an error response. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly detail: string
  readonly status: number
}

const etsiErrors: Readonly<Partial<Record<ErrorCode, readonly [name: string, title: string]>>> = {
  'ngsi-ld.invalid-request': ['InvalidRequest', 'Invalid request'],
  'ngsi-ld.bad-request-data': ['BadRequestData', 'Bad request data'],
  'ngsi-ld.already-exists': ['AlreadyExists', 'Already exists'],
  'ngsi-ld.conflict': ['Conflict', 'Conflict'],
  'ngsi-ld.not-found': ['ResourceNotFound', 'Resource not found'],
  'ngsi-ld.not-supported': ['OperationNotSupported', 'Operation not supported'],
  'ngsi-ld.too-complex': ['TooComplexQuery', 'Query too complex'],
  'ngsi-ld.too-many-results': ['TooManyResults', 'Too many results'],
  'ngsi-ld.too-many-names': ['TooManyResults', 'Too many names'],
  'ngsi-ld.context-not-available': ['LdContextNotAvailable', 'JSON-LD context not available'],
  'ngsi-ld.nonexistent-tenant': ['NonexistentTenant', 'Tenant does not exist'],
}

const statusTitles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  411: 'Length Required',
  412: 'Precondition Failed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  507: 'Insufficient Storage',
  508: 'Loop Detected',
}

/**
 * The body of an error response. Codes without an ETSI name are `about:blank` with the title of their status
 * (RFC 7807, 4.2). The details of an internal error are logged only; its body refers to the log.
 */
export function problemOf(error: GatewayError, rules: ProfileRules = profiles['1.9']): Problem {
  const { code, entry } = error
  const status = code === 'ngsi-ld.context-not-available' ? rules.contextNotAvailableStatus : entry.status
  const detail = code === 'gateway.internal' ? entry.hint : error.message
  if (status === 500)
    return { type: `${etsiErrorBase}InternalError`, title: 'Internal error', detail, status }
  const etsi = etsiErrors[code]
  if (etsi !== undefined) return { type: etsiErrorBase + etsi[0], title: etsi[1], detail, status }
  return { type: 'about:blank', title: statusTitles[status] ?? 'Error', detail, status }
}

const etsiErrorBase = 'https://uri.etsi.org/ngsi-ld/errors/'

/** The title and detail of a problem body in one line; if it has none, by default the start of the text. */
export function problemTextIn(text: string, otherwise: string = text.slice(0, 200)): string {
  const body = parsedJson(text)
  const { title, detail } = isObject(body) ? body : {}
  return [title, detail].filter((part) => typeof part === 'string').join(': ') || otherwise
}
