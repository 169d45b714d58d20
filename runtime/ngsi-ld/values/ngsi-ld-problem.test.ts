/** The bodies of error responses. */
import { describe, expect, it } from 'vitest'
import { type ErrorCode, errorRegister, GatewayError } from '#base/register/errors.ts'
import {
  alreadyExists,
  badRequestData,
  invalidRequest,
  notFound,
  problemOf,
  tooComplex,
} from './ngsi-ld-problem.ts'
import { profiles } from './profile.ts'

const etsi = 'https://uri.etsi.org/ngsi-ld/errors/'

describe('a problem', () => {
  it.each([
    [badRequestData('must be a URI', 'id'), 'BadRequestData', 400, 'id: must be a URI'],
    [badRequestData('names no attribute'), 'BadRequestData', 400, 'names no attribute'],
    [invalidRequest('not JSON'), 'InvalidRequest', 400, 'not JSON'],
    [notFound('no such entity'), 'ResourceNotFound', 404, 'no such entity'],
    [alreadyExists('urn:e'), 'AlreadyExists', 409, 'urn:e'],
    [tooComplex('q'), 'TooComplexQuery', 403, 'q'],
    [new GatewayError('ngsi-ld.nonexistent-tenant', 't'), 'NonexistentTenant', 404, 't'],
  ])('%s has an ETSI type', (error, name, status, detail) =>
    expect(problemOf(error)).toEqual({
      type: etsi + name,
      title: expect.any(String) as string,
      detail,
      status,
    }),
  )

  it('names the invalid member in its facts', () =>
    expect(badRequestData('must be a URI', 'id').details).toEqual({ field: 'id' }))

  it('of the HTTP binding has type about:blank', () => {
    expect(problemOf(new GatewayError('http.method-not-allowed', 'PUT'))).toEqual({
      type: 'about:blank',
      title: 'Method Not Allowed',
      detail: 'PUT',
      status: 405,
    })
  })

  it('of an internal failure reveals no internals', () => {
    const problem = problemOf(new GatewayError('gateway.internal', 'secret of the inside'))
    expect(problem).toMatchObject({ type: `${etsi}InternalError`, status: 500 })
    expect(JSON.stringify(problem)).not.toContain('secret')
  })

  it('has the status of the profile when a context is not available', () => {
    const error = new GatewayError('ngsi-ld.context-not-available', 'https://x.org/c')
    expect(problemOf(error, profiles['1.1.2']).status).toBe(503)
    expect(problemOf(error, profiles['1.8']).status).toBe(504)
    expect(problemOf(error).type).toBe(`${etsi}LdContextNotAvailable`)
  })

  it('exists for every code, with a title', () => {
    const problems = (Object.keys(errorRegister) as ErrorCode[]).map((code) =>
      problemOf(new GatewayError(code, 'x')),
    )
    expect(problems.filter(({ type }) => type !== 'about:blank' && !type.startsWith(etsi))).toEqual([])
    expect(problems.filter(({ title }) => title === 'Error')).toEqual([])
  })
})
