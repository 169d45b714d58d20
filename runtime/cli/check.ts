/**
 * `selvedge check`: everything that would keep a start from succeeding, all of it at once, without starting. Exit
 * code 78 for wrong settings, 1 when the settings are right and something else is in the way.
 */
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { toGatewayError } from '#base/errors.ts'
import { isLoopbackListener, readSecretFile } from '#config/access.ts'
import type { ListenPort, Settings } from '#config/schema.ts'
import { inspectFolder } from '#store/inspection.ts'
import { type Given, table } from './arguments.ts'
import { whyTaken } from './ports.ts'
import { mistakesText, settingsOf } from './settings-options.ts'
import { exitCodes, type Terminal } from './terminal.ts'

/** One thing looked at. */
interface Finding {
  readonly what: string
  readonly ok: boolean
  readonly text: string
}

export async function check(given: Given, terminal: Terminal): Promise<number> {
  const asJson = given.has('json')
  const loaded = await settingsOf(given, terminal)
  if (loaded.mistakes !== undefined) {
    if (asJson) terminal.out(`${JSON.stringify({ ok: false, mistakes: loaded.mistakes }, undefined, 2)}\n`)
    else terminal.err(mistakesText(loaded.mistakes))
    return exitCodes.settings
  }
  const { settings, file, warnings, absent } = loaded
  const findings = await look(settings)
  const ok = findings.every((finding) => finding.ok)
  if (asJson) terminal.out(`${JSON.stringify({ ok, file, warnings, absent, findings }, undefined, 2)}\n`)
  else {
    const rows = [
      ['settings', `ok, from ${file ?? 'defaults and environment'}`],
      ...warnings.map((warning) => ['warning', warning]),
      ...absent.map(({ setting, part }) => ['not built', `${setting} is for the ${part}`]),
      ...findings.map((finding) => [finding.what, `${finding.ok ? 'ok' : 'NOT OK'}, ${finding.text}`]),
    ]
    terminal.out(table(rows))
  }
  return ok ? exitCodes.ok : exitCodes.failure
}

async function look(settings: Settings): Promise<Finding[]> {
  const folder = inspectData(settings.data)
  return [
    ...folder.findings,
    ...credentials(settings),
    await portFinding('HTTP port', settings.host, settings.http.port, folder.inUse),
    await portFinding('MQTT port', settings.host, settings.mqtt.port, folder.inUse),
  ]
}

function inspectData(folder: string): { findings: Finding[]; inUse: boolean } {
  const what = 'data folder'
  const problem = folderProblem(folder)
  if (problem !== undefined)
    return { findings: [{ what, ok: false, text: `${folder} ${problem}` }], inUse: false }
  const facts = inspectFolder(folder)
  if (facts === undefined)
    return { findings: [{ what, ok: true, text: `${folder} will be made` }], inUse: false }
  const use = facts.inUse ? ', in use by a running gateway' : ''
  const tenants = facts.tenants.map(({ name, format }): Finding => {
    const newer = format > facts.knownFormat
    const state = newer ? `, newer than ${facts.knownFormat}, which this version writes` : ''
    return {
      what: name === '' ? 'data format' : `data format of ${name}`,
      ok: !newer,
      text: `${format}${state}`,
    }
  })
  const unreadable = facts.unreadable.map(({ file, reason }) => ({ what: file, ok: false, text: reason }))
  return { findings: [{ what, ok: true, text: folder + use }, ...tenants, ...unreadable], inUse: facts.inUse }
}

function folderProblem(folder: string): string | undefined {
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  const facts = statSync(existing)
  if (!facts.isDirectory())
    return existing === folder ? 'is no folder' : `cannot be made: ${existing} is no folder`
  if (existing === folder && (facts.mode & 0o022) !== 0)
    return 'may be written by others; take that right away'
  try {
    accessSync(existing, constants.R_OK | constants.W_OK | constants.X_OK)
    return undefined
  } catch {
    return existing === folder ? 'cannot be written' : `cannot be made: ${existing} cannot be written`
  }
}

function credentials({ host, http, mqtt, bridgeIn }: Settings): Finding[] {
  const needed = !isLoopbackListener(host)
  const made = needed ? 'will be made at the first start' : 'not needed on loopback'
  return [
    ...(http.port === 'off' ? [] : [secretFinding('HTTP token', http.tokenFile, made)]),
    ...(mqtt.port === 'off' ? [] : [secretFinding('MQTT passwords', mqtt.passwordFile, made)]),
    ...bridgeIn.flatMap(({ passwordFile, caFile }, i) => [
      ...(passwordFile === undefined
        ? []
        : [secretFinding(`password of bridgeIn[${i}]`, passwordFile, undefined)]),
      ...(caFile === undefined ? [] : [readableFinding(`authorities of bridgeIn[${i}]`, caFile)]),
    ]),
  ]
}

/** `ifAbsent` says what the absence of the file means; without it the file has to be there. */
function secretFinding(what: string, file: string, ifAbsent: string | undefined): Finding {
  try {
    const found = readSecretFile(file) !== undefined
    if (found) return { what, ok: true, text: file }
    return { what, ok: ifAbsent !== undefined, text: ifAbsent ?? `${file} does not exist` }
  } catch (error) {
    return { what, ok: false, text: toGatewayError(error).message }
  }
}

function readableFinding(what: string, file: string): Finding {
  try {
    readFileSync(file)
    return { what, ok: true, text: file }
  } catch (error) {
    return { what, ok: false, text: toGatewayError(error).message }
  }
}

async function portFinding(what: string, host: string, port: ListenPort, inUse: boolean): Promise<Finding> {
  if (port === 'off') return { what, ok: true, text: 'off' }
  const taken = await whyTaken(host, port)
  if (taken === undefined)
    return { what, ok: true, text: port === 0 ? 'any free one' : `${host}:${port} is free` }
  if (inUse && taken === 'EADDRINUSE')
    return { what, ok: true, text: `${host}:${port} is held, probably by the running gateway` }
  return { what, ok: false, text: `${host}:${port} cannot be listened at: ${taken}` }
}
