/**
 * The options of all commands that need settings, and the text of mistakes in settings. `--set` sets any
 * setting; the others are short forms for common settings.
 */

import { isGatewayError } from '#base/register/errors.ts'
import { bridges } from '#bridges/registry.ts'
import type { GivenOptions, Option } from '#cli/terminal/arguments.ts'
import type { Terminal } from '#cli/terminal/terminal.ts'
import { type LoadedSettings, loadSettings, type SettingFlag } from '#config/load/load.ts'
import { type Mistake, mistakeLine } from '#config/schema/mistakes.ts'
import { compilePattern } from '#ngsi-ld/values/pattern.ts'
import { uplinkCheck } from '#uplink/live/declared-uplinks.ts'

const shortForms: readonly (Option & { readonly value: string; readonly path: string })[] = [
  { name: 'data', value: 'FOLDER', path: 'data', summary: 'Data folder; default .selvedge' },
  { name: 'host', value: 'ADDRESS', path: 'host', summary: 'Address of the listeners; default 127.0.0.1' },
  {
    name: 'http-port',
    value: 'PORT',
    path: 'http.port',
    summary: 'HTTP port; default 9090, 0 any, off none',
  },
  {
    name: 'mqtt-port',
    value: 'PORT',
    path: 'mqtt.port',
    summary: 'MQTT port; default 1883, 0 any, off none',
  },
  { name: 'log-level', value: 'LEVEL', path: 'log.level', summary: 'debug, info, warn or error' },
]

export const settingsOptions: readonly Option[] = [
  {
    name: 'config',
    value: 'FILE',
    summary: 'Settings, YAML or JSON; default $SELVEDGE_CONFIG or ./selvedge.yaml',
  },
  ...shortForms,
  { name: 'set', value: 'PATH=VALUE', many: true, summary: 'Any setting, such as commit.lingerMs=50' },
]

/** Loads the settings from options, environment and file; or returns the mistakes. */
export function settingsOf(given: GivenOptions, terminal: Terminal): ReturnType<typeof loadSettings> {
  const flags = shortForms.flatMap(({ name, path }): SettingFlag[] => {
    const text = given.text(name)
    return text === undefined ? [] : [{ path, text, source: `--${name}` }]
  })
  for (const one of given.all('set')) {
    const cut = one.indexOf('=')
    const path = cut < 0 ? one : one.slice(0, cut)
    flags.push({ path, text: cut < 0 ? '' : one.slice(cut + 1), source: `--set ${path}` })
  }
  const checks = { bridgeChecks, uplinkCheck, patternCheck }
  return loadSettings({ file: given.text('config'), env: terminal.env, flags, ...checks })
}

function patternCheck(regexp: string): string | undefined {
  try {
    compilePattern(regexp)
    return undefined
  } catch (error) {
    if (!isGatewayError(error)) throw error
    return error.message
  }
}

/** The settings, or undefined after printing the mistakes. */
export async function settingsOrReport(
  given: GivenOptions,
  terminal: Terminal,
): Promise<LoadedSettings | undefined> {
  const loaded = await settingsOf(given, terminal)
  if (loaded.mistakes === undefined) return loaded
  terminal.err(mistakesText(loaded.mistakes))
  return undefined
}

export function mistakesText(mistakes: readonly Mistake[]): string {
  const count = mistakes.length === 1 ? '1 mistake' : `${mistakes.length} mistakes`
  return [`selvedge: ${count} in the settings`, ...mistakes.map((one) => `  ${mistakeLine(one)}`), ''].join(
    '\n',
  )
}

const bridgeChecks = Object.fromEntries(
  bridges.map((bridge) => [bridge.name, (raw: unknown) => bridge.check?.(raw).problems ?? []]),
)
