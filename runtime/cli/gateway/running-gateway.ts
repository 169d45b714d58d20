/**
 * The gateway that a command talks to: the one of an address, or that of the settings, with its token where it wants
 * one. One that is busy is asked again for a while.
 */

import { reachableHost } from '#base/load/loopback.ts'
import { GatewayError } from '#base/register/errors.ts'
import type { Given } from '#cli/terminal/arguments.ts'
import { readSecretFile } from '#config/load/http-token.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { type Answer, ask, type Question } from './gateway-client.ts'

export interface RunningGateway {
  readonly url: string
  /** Asks for a path. A gateway that is busy is asked again for a while. @throws cli.no-answer */
  ask(path: string, question?: Question): Promise<Answer>
}

/** Address of the gateway of these settings, as a process of the same machine reaches it. */
function addressOf({ host, http }: Pick<Settings, 'host' | 'http'>): string | undefined {
  if (http.port === 'off' || http.port === 0) return undefined
  return `http://${reachableHost(host)}:${http.port}`
}

/** The address of a gateway without slashes and /ngsi-ld/v1 at its end. @throws cli.usage for anything else */
function gatewayUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text.replace(/\/*(?:\/ngsi-ld\/v1)?\/*$/, '')
  throw new GatewayError(
    'cli.usage',
    `--url expects the address of a gateway, such as http://host:9090, got ${text}`,
  )
}

interface ReachedGateway {
  readonly url: string
  /** What it answers at /health/ready. */
  readonly health: Answer
  /** Undefined where it asks for none. */
  readonly token: string | undefined
}

/**
 * Reaches the gateway of --url, else that of the settings, with the token of --token-file, else that of the settings. Undefined
 * where neither names an address.
 * @throws cli.usage, cli.no-answer, cli.no-gateway, cli.no-token
 */
export async function reachGateway(given: Given, settings: Settings): Promise<ReachedGateway | undefined> {
  const named = given.text('url') ?? addressOf(settings)
  if (named === undefined) return undefined
  const url = gatewayUrl(named)
  const open = await ask(`${url}${healthPath}`)
  if (open.status !== 401) return { url, health: gatewayHealth(url, open), token: undefined }
  const file = given.text('token-file') ?? settings.http.tokenFile
  const token = readSecretFile(file)
  if (token === undefined)
    throw new GatewayError('cli.no-token', `the gateway at ${url} wants a token, and ${file} does not exist`)
  const health = await ask(`${url}${healthPath}`, { token })
  if (health.status === 401)
    throw new GatewayError(
      'cli.no-token',
      `the gateway at ${url} wants a token, and rejected the one in ${file}`,
    )
  return { url, health: gatewayHealth(url, health), token }
}

const healthPath = '/health/ready'

/** @throws cli.no-gateway when the answer is not one of a gateway */
function gatewayHealth(url: string, answer: Answer): Answer {
  try {
    const { version, reasons } = JSON.parse(answer.text) as { version?: unknown; reasons?: unknown }
    if (typeof version === 'string' && Array.isArray(reasons)) return answer
  } catch {
    // Not JSON, or not an object.
  }
  throw new GatewayError(
    'cli.no-gateway',
    `${url} is not the address of a gateway: something else answers ${healthPath} with status ${answer.status}`,
  )
}

/** @throws cli.usage, cli.no-answer, cli.no-gateway, cli.no-token */
export async function findGateway(given: Given, settings: Settings): Promise<RunningGateway> {
  const reached = await reachGateway(given, settings)
  if (reached === undefined)
    throw new GatewayError('cli.usage', '--url is needed: the settings name no HTTP port')
  const { url, token } = reached
  const tenant = given.text('tenant')
  return Object.freeze({
    url,
    async ask(path, question = {}) {
      for (let left = busyTriesMax; ; left--) {
        const answer = await ask(url + path, { deadlineMs, ...question, token, tenant })
        if (answer.status !== 503 || left === 0) return answer
        await new Promise((resolve) => setTimeout(resolve, busyPauseMs))
      }
    },
  } satisfies RunningGateway)
}

const deadlineMs = 60_000
const busyTriesMax = 60
const busyPauseMs = 1000

/** Why a gateway refused, as it says itself. */
export function refusalOf({ status, text }: Answer, what: string): GatewayError {
  let detail = text.slice(0, 200)
  try {
    detail = (JSON.parse(text) as { detail?: string }).detail ?? detail
  } catch {
    // No problem of ours; its text has to do.
  }
  return new GatewayError('peer.refused', `${what} was answered with ${status}: ${detail}`, { status })
}
