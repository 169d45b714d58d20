/**
 * Finds the running gateway for a command, by --url or by the settings, and its token if it requires one.
 * Requests to a busy gateway are repeated for a while.
 */

import { reachableHost } from '#base/load/loopback.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { readSecretFile } from '#config/load/secret-files.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { isList, isObject, parsedJson } from '#ngsi-ld/values/json.ts'
import { type GatewayRequest, type GatewayResponse, sendRequest } from './gateway-client.ts'

/** Address of the gateway of these settings, as reached from the same machine. */
function addressOf({ host, http }: Pick<Settings, 'host' | 'http'>): string | undefined {
  if (http.port === 'off' || http.port === 0) return undefined
  return `http://${reachableHost(host)}:${http.port}`
}

/**
 * The address of a gateway without trailing slashes and /ngsi-ld/v1. @throws cli.usage for an invalid address
 */
function gatewayUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text.replace(/\/*(?:\/ngsi-ld\/v1)?\/*$/, '')
  throw new GatewayError(
    'cli.usage',
    `--url expects the address of a gateway, such as http://host:9090, got ${text}`,
  )
}

interface ReachedGateway {
  readonly url: string
  /** Its response at /health/ready. */
  readonly health: GatewayResponse
  /** Undefined if it requires none. */
  readonly token: string | undefined
}

/**
 * Connects to the gateway of --url or of the settings, with the token of --token-file or of the settings.
 * Returns undefined if neither contains an address.
 * @throws cli.usage, cli.no-answer, cli.no-gateway, cli.no-token
 */
export async function reachGateway(
  given: GivenOptions,
  settings: Settings,
): Promise<ReachedGateway | undefined> {
  const named = given.text('url') ?? addressOf(settings)
  if (named === undefined) return undefined
  const url = gatewayUrl(named)
  const open = await sendRequest(`${url}${healthPath}`)
  if (open.status !== 401) return { url, health: gatewayHealth(url, open), token: undefined }
  const file = given.text('token-file') ?? settings.http.tokenFile
  const token = readSecretFile(file)
  if (token === undefined)
    throw new GatewayError(
      'cli.no-token',
      `the gateway at ${url} requires a token, and ${file} does not exist`,
    )
  const health = await sendRequest(`${url}${healthPath}`, { token })
  if (health.status === 401)
    throw new GatewayError('cli.no-token', `the gateway at ${url} rejected the token in ${file}`)
  return { url, health: gatewayHealth(url, health), token }
}

const healthPath = '/health/ready'

/** @throws cli.no-gateway if the response is not from a gateway */
function gatewayHealth(url: string, answer: GatewayResponse): GatewayResponse {
  const body = parsedJson(answer.text)
  if (isObject(body) && typeof body['version'] === 'string' && isList(body['reasons'])) return answer
  throw new GatewayError(
    'cli.no-gateway',
    `${url} is not the address of a gateway: another server responds to ${healthPath} with status ${answer.status}`,
  )
}

export type RunningGateway = Awaited<ReturnType<typeof findGateway>>

/** @throws cli.usage, cli.no-answer, cli.no-gateway, cli.no-token */
export async function findGateway(given: GivenOptions, settings: Settings) {
  const reached = await reachGateway(given, settings)
  if (reached === undefined)
    throw new GatewayError('cli.usage', '--url is required, because the settings contain no fixed HTTP port')
  const { url, token } = reached
  const tenant = given.text('tenant')
  return Object.freeze({
    url,
    /** Sends a request; repeats it for a while if the gateway is busy. @throws cli.no-answer */
    async request(path: string, options: GatewayRequest = {}): Promise<GatewayResponse> {
      for (let left = busyTriesMax; ; left--) {
        const answer = await sendRequest(url + path, { deadlineMs, ...options, token, tenant })
        if (answer.status !== 503 || left === 0) return answer
        await new Promise((resolve) => setTimeout(resolve, busyPauseMs))
      }
    },
  })
}

const deadlineMs = 60_000
const busyTriesMax = 60
const busyPauseMs = 1000

/** The error for a request that the gateway rejected, with the detail of its response. */
export function refusalOf({ status, text }: GatewayResponse, what: string): GatewayError {
  const problem = parsedJson(text)
  const given = isObject(problem) ? problem['detail'] : undefined
  const detail = typeof given === 'string' ? given : text.slice(0, 200)
  return new GatewayError('peer.refused', `${what} failed with status ${status}: ${detail}`, { status })
}
