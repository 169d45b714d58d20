/**
 * One HTTP gateway for all tests of a file: opened before the first, closed after the last. Tests share its
 * entities, so each uses ids of its own.
 */
import { afterAll, beforeAll } from 'vitest'
import {
  type HttpClient,
  type HttpGateway,
  type HttpGatewayOptions,
  startHttpGateway,
} from './http-gateway.ts'

export interface GatewayOfFile extends HttpClient {
  readonly url: string
  readonly port: number
  readonly logLines: readonly string[]
  readonly serve: HttpGateway['serve']
}

export function gatewayOfFile(options: HttpGatewayOptions = {}): GatewayOfFile {
  let gateway: HttpGateway
  beforeAll(async () => {
    gateway = await startHttpGateway(options)
  })
  afterAll(() => gateway.close())
  return {
    ask: (...args) => gateway.ask(...args),
    get: (...args) => gateway.get(...args),
    send: (...args) => gateway.send(...args),
    get url() {
      return gateway.url
    },
    get port() {
      return gateway.port
    },
    get serve() {
      return gateway.serve
    },
    get logLines() {
      return gateway.logLines
    },
  }
}

let last = 0

/** A URI that no other test of the file uses. */
export const freshId = (kind = 'Thing'): string => `urn:ngsi-ld:${kind}:${++last}`

/** `{type: 'Property', value}` with further members. */
export const property = (value: unknown, more: object = {}): object => ({ type: 'Property', value, ...more })
