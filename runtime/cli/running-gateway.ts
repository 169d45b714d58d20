/**
 * The gateway that a command talks to: the one of an address, or that of the settings, with its token where it wants
 * one. One that is busy is asked again for a while.
 */
import { GatewayError } from '#base/errors.ts'
import { reachableHost } from '#base/loopback.ts'
import { readSecretFile } from '#config/access.ts'
import type { Settings } from '#config/schema.ts'
import type { Given } from './arguments.ts'
import { type Answer, ask, type Question } from './ask.ts'

export interface RunningGateway {
  readonly url: string
  /** Asks for a path. A gateway that is busy is asked again for a while. @throws peer.unavailable */
  ask(path: string, question?: Question): Promise<Answer>
}

/** Address of the gateway of these settings, as a process of the same machine reaches it. */
export function addressOf({ host, http }: Pick<Settings, 'host' | 'http'>): string | undefined {
  if (http.port === 'off' || http.port === 0) return undefined
  return `http://${reachableHost(host)}:${http.port}`
}

/** The address of a gateway without slashes at its end. @throws cli.usage for anything else */
export function gatewayUrl(text: string): string {
  if (/^https?:$/.test(URL.parse(text)?.protocol ?? '')) return text.replace(/\/+$/, '')
  throw new GatewayError(
    'cli.usage',
    `--url expects the address of a gateway, such as http://host:9090, got ${text}`,
  )
}

/** @throws cli.usage, peer.unavailable, http.unauthorized */
export async function findGateway(given: Given, settings: Settings): Promise<RunningGateway> {
  const named = given.text('url') ?? addressOf(settings)
  if (named === undefined)
    throw new GatewayError('cli.usage', '--url is needed: the settings name no HTTP port')
  const url = gatewayUrl(named)
  const tenant = given.text('tenant')
  let token: string | undefined
  const health = await ask(`${url}/health/ready`)
  if (health.status === 401) {
    token = readSecretFile(settings.http.tokenFile)
    const { status } = await ask(`${url}/health/ready`, { token })
    if (status === 401) {
      throw new GatewayError(
        'http.unauthorized',
        `${url} wants another token than ${settings.http.tokenFile} has`,
      )
    }
  }
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
