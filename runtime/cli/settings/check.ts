/**
 * `selvedge check`: reports everything that would prevent a start, without starting. The exit code is 78 for
 * wrong settings, 1 for any other obstacle.
 */
import { isLoopbackListener } from '#base/load/loopback.ts'
import { toGatewayError } from '#base/register/errors.ts'
import { type GivenOptions, table } from '#cli/terminal/arguments.ts'
import { whyTaken } from '#cli/terminal/ports.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { isThere, readAuthorities, readSecretFile, requireSecretFile } from '#config/load/secret-files.ts'
import { pluginNames } from '#config/schema/plugin-schema.ts'
import type { ListenPort, Settings } from '#config/schema/settings-schema.ts'
import { listUsers } from '#mqtt/clients/password-file.ts'
import { inspectFolder } from '#store/file/inspection.ts'
import { folderProblem } from './data-folder.ts'
import { mistakesText, settingsOf } from './settings-options.ts'

/** The result of a check. */
interface Finding {
  readonly what: string
  readonly ok: boolean
  readonly text: string
}

export async function check(given: GivenOptions, terminal: Terminal): Promise<number> {
  const asJson = given.has('json')
  const loaded = await settingsOf(given, terminal)
  if (loaded.mistakes !== undefined) {
    if (asJson) terminal.out(`${JSON.stringify({ ok: false, mistakes: loaded.mistakes }, undefined, 2)}\n`)
    else terminal.err(mistakesText(loaded.mistakes))
    return exitCodes.settings
  }
  const { settings, file, warnings, absent } = loaded
  const findings = await inspect(settings)
  const ok = findings.every((finding) => finding.ok)
  if (asJson) terminal.out(`${JSON.stringify({ ok, file, warnings, absent, findings }, undefined, 2)}\n`)
  else {
    const rows = [
      ['settings', `ok, from ${file ?? 'defaults and environment'}`],
      ...warnings.map((warning) => ['warning', warning]),
      ...absent.map(({ setting, part }) => ['not built', `${setting} belongs to the ${part}`]),
      ...findings.map((finding) => [finding.what, `${finding.ok ? 'ok' : 'NOT OK'}, ${finding.text}`]),
    ]
    terminal.out(table(rows))
  }
  return ok ? exitCodes.ok : exitCodes.failure
}

async function inspect(settings: Settings): Promise<Finding[]> {
  const folder = inspectData(settings.data)
  return [
    ...folder.findings,
    ...credentials(settings),
    ...namedFiles(settings),
    await portFinding('HTTP port', settings.host, settings.http.port, folder.inUse),
    await portFinding('MQTT port', settings.host, settings.mqtt.port, folder.inUse),
    ...(await pluginPortFindings(settings, folder.inUse)),
  ]
}

/**
 * Ports of plugins. A plugin whose port is in use is still available on the HTTP port, so none prevents a
 * start.
 */
async function pluginPortFindings(settings: Settings, inUse: boolean): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const name of pluginNames) {
    const { enabled, port } = settings[name]
    if (!enabled || port === 'off') continue
    const { text, ok } = await portFinding(`port of ${name}`, settings.host, port, inUse)
    const only = ok ? '' : `; the plugin is available only under /${name}/ of the HTTP port`
    findings.push({ what: `port of ${name}`, ok: true, text: text + only })
  }
  return findings
}

function inspectData(folder: string): { findings: Finding[]; inUse: boolean } {
  const what = 'data folder'
  const problem = folderProblem(folder)
  if (problem !== undefined)
    return { findings: [{ what, ok: false, text: `${folder} ${problem}` }], inUse: false }
  const facts = inspectFolder(folder)
  if (facts === undefined)
    return { findings: [{ what, ok: true, text: `${folder} will be created` }], inUse: false }
  const use = facts.inUse ? ', in use by a running gateway' : ''
  const tenants = facts.tenants.map(({ name, format }): Finding => {
    const newer = format > facts.knownFormat
    const state = newer ? `, newer than ${facts.knownFormat}, the format of this version` : ''
    return {
      what: name === '' ? 'data format' : `data format of ${name}`,
      ok: !newer,
      text: `${format}${state}`,
    }
  })
  const unreadable = facts.unreadable.map(({ file, reason }) => ({ what: file, ok: false, text: reason }))
  return { findings: [{ what, ok: true, text: folder + use }, ...tenants, ...unreadable], inUse: facts.inUse }
}

function credentials({ host, http, mqtt }: Settings): Finding[] {
  const absent = isLoopbackListener(host) ? 'not needed on loopback' : 'will be created at the first start'
  const { tokenFile } = http
  const { passwordFile } = mqtt
  const token = (): string => (readSecretFile(tokenFile) === undefined ? absent : tokenFile)
  const users = (): string =>
    isThere(passwordFile) ? `${listUsers(passwordFile).length} users in ${passwordFile}` : absent
  return [
    ...(http.port === 'off' ? [] : [finding('HTTP token', token)]),
    ...(mqtt.port === 'off' ? [] : [finding('MQTT passwords', users)]),
  ]
}

/** Files that the settings of brokers, sources and backends require. */
function namedFiles({ outbound, indexing, quality, ranking, search, ...settings }: Settings): Finding[] {
  const { bridgeIn, uplinks, register, copies, tunnels } = settings
  const of = (name: string, all: readonly Files[]): Finding[] =>
    all.flatMap((one, i) => filesOf(`${name}[${i}]`, one))
  return [
    ...filesOf('outbound', outbound),
    ...of('bridgeIn', bridgeIn),
    ...of('uplinks', uplinks),
    ...of('register', register),
    ...of('copies', copies),
    ...of('tunnels', tunnels),
    ...(indexing.enabled ? of('indexing.brokers', indexing.brokers) : []),
    ...(quality.enabled ? of('quality.sources.hosts', quality.sources.hosts) : []),
    ...(ranking.enabled ? filesOf('ranking', ranking) : []),
    ...(search.enabled ? filesOf('search', search) : []),
  ]
}

interface Files {
  readonly tokenFile?: string | undefined
  readonly sourceTokenFile?: string | undefined
  readonly passwordFile?: string | undefined
  readonly headerFiles?: Readonly<Record<string, string>> | undefined
  readonly identity?: { readonly passwordFile: string } | undefined
  readonly caFile?: string | undefined
}

function filesOf(of: string, { caFile, headerFiles = {}, identity, ...files }: Files): Finding[] {
  const secrets: readonly (readonly [what: string, file: string | undefined])[] = [
    ['token', files.tokenFile],
    ['token for this gateway', files.sourceTokenFile],
    ['password', files.passwordFile ?? identity?.passwordFile],
    ...Object.entries(headerFiles),
  ]
  return [
    ...secrets.flatMap(([what, file]) =>
      file === undefined ? [] : [finding(`${what} of ${of}`, () => requireSecretFile(file) && file)],
    ),
    ...(caFile === undefined
      ? []
      : [finding(`authorities of ${of}`, () => readAuthorities(caFile) && caFile)]),
  ]
}

/** The finding is ok with the text that `inspectFile` returns, or not ok with the error that it throws. */
function finding(what: string, inspectFile: () => string): Finding {
  try {
    return { what, ok: true, text: inspectFile() }
  } catch (error) {
    return { what, ok: false, text: toGatewayError(error).message }
  }
}

async function portFinding(what: string, host: string, port: ListenPort, inUse: boolean): Promise<Finding> {
  if (port === 'off') return { what, ok: true, text: 'off' }
  const taken = await whyTaken(host, port)
  if (taken === undefined)
    return { what, ok: true, text: port === 0 ? 'any free port' : `${host}:${port} is free` }
  if (inUse && taken === 'EADDRINUSE')
    return { what, ok: true, text: `${host}:${port} is in use, probably by the running gateway` }
  return { what, ok: false, text: `${host}:${port} cannot be bound: ${taken}` }
}
