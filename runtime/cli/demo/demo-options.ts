/**
 * Parses and checks the options of `selvedge demo`.
 */
import { GatewayError } from '#base/register/errors.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'

export interface DemoOptions {
  /** Folder of CSV series; if undefined, the site is simulated. */
  readonly data: string | undefined
  /** Recorded seconds per second; Infinity for as fast as possible. */
  readonly speed: number
  readonly stepMs: number
  /** Data folder that is kept. */
  readonly keep: string | undefined
  readonly httpPort: number | undefined
  readonly mqttPort: number | undefined
  /** Duration from the start of the site. */
  readonly durationMs: number | undefined
  /** URL of a running gateway, without a trailing slash. */
  readonly site: string | undefined
}

const defaultSpeed = 3600
const defaultStepSeconds = 5

/** @throws cli.usage with the name of the option. */
export function demoOptions(given: GivenOptions): DemoOptions {
  const seconds = (name: string): number | undefined =>
    positive(name, given.text(name), 'a number greater than 0')
  const speed = given.text('speed')
  const duration = seconds('duration')
  return {
    data: given.text('data'),
    speed:
      speed === 'max'
        ? Number.POSITIVE_INFINITY
        : (positive('speed', speed, 'a number greater than 0, or max') ?? defaultSpeed),
    stepMs: (seconds('step') ?? defaultStepSeconds) * 1000,
    keep: given.text('keep'),
    httpPort: port('port', given.text('port')),
    mqttPort: port('mqtt-port', given.text('mqtt-port')),
    durationMs: duration === undefined ? undefined : duration * 1000,
    site: siteUrl(given.text('site')),
  }
}

function positive(name: string, text: string | undefined, expected: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value
  throw refusal(name, expected, text)
}

function port(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw refusal(name, 'a port from 0 to 65535', text)
}

function siteUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol)) return text.replace(/\/+$/, '')
  throw refusal('site', 'a URL such as http://127.0.0.1:9090', text)
}

function refusal(name: string, expected: string, text: string): GatewayError {
  return new GatewayError('cli.usage', `--${name} expects ${expected}, got ${JSON.stringify(text)}`)
}
