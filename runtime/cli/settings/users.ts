/**
 * `selvedge users`: lists, adds, changes and removes MQTT users in the password file; a running gateway reads
 * the changed file within seconds. A password is read from standard input, or generated and shown once.
 */
import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { GatewayError } from '#base/register/errors.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { isThere } from '#config/load/secret-files.ts'
import { addUser, listUsers, removeUser } from '#mqtt/clients/password-file.ts'
import { settingsOrReport } from './settings-options.ts'

export async function users(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const file = loaded.settings.mqtt.passwordFile
  const [add, remove] = [given.text('add'), given.text('remove')]
  if (add !== undefined && remove !== undefined) {
    throw new GatewayError('cli.usage', '--add and --remove exclude each other')
  }
  if (remove !== undefined) {
    if (isThere(file) && removeUser(file, remove)) return exitCodes.ok
    terminal.err(`${file} has no user ${remove}\n`)
    return exitCodes.failure
  }
  if (add === undefined) {
    const names = isThere(file) ? listUsers(file) : undefined
    if (names === undefined) terminal.err(`${file} does not exist yet; --add creates it\n`)
    terminal.out(
      given.has('json')
        ? `${JSON.stringify(names ?? [])}\n`
        : (names ?? []).map((name) => `${name}\n`).join(''),
    )
    return exitCodes.ok
  }
  const isGenerated = !given.has('password-stdin')
  const password = isGenerated
    ? randomBytes(18).toString('base64url')
    : (await text(terminal.input)).split(/\r?\n/, 1)[0]!
  const what = await addUser(file, add, password)
  if (isGenerated) terminal.out(`${password}\n`)
  terminal.err(`user ${add} ${what} in ${file}${isGenerated ? '; the password is shown only once' : ''}\n`)
  return exitCodes.ok
}
