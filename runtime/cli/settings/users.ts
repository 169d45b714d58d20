/**
 * `selvedge users`: who may connect by MQTT. Adds, changes and removes users of the password file; a running gateway
 * notices within seconds. A password comes from standard input, or is made and shown once.
 */
import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { GatewayError } from '#base/register/errors.ts'
import type { Given } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { isThere } from '#config/load/http-token.ts'
import { addUser, listUsers, removeUser } from '#mqtt/clients/password-file.ts'
import { settingsOrTell } from './settings-options.ts'

export async function users(given: Given, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrTell(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const file = loaded.settings.mqtt.passwordFile
  const [add, remove] = [given.text('add'), given.text('remove')]
  if (add !== undefined && remove !== undefined) {
    throw new GatewayError('cli.usage', '--add and --remove do not go together')
  }
  if (remove !== undefined) {
    if (isThere(file) && removeUser(file, remove)) return exitCodes.ok
    terminal.err(`${file} has no user ${remove}\n`)
    return exitCodes.failure
  }
  if (add === undefined) {
    const names = isThere(file) ? listUsers(file) : undefined
    if (names === undefined) terminal.err(`there is no ${file} yet; --add makes it\n`)
    terminal.out(
      given.has('json')
        ? `${JSON.stringify(names ?? [])}\n`
        : (names ?? []).map((name) => `${name}\n`).join(''),
    )
    return exitCodes.ok
  }
  const isMade = !given.has('password-stdin')
  const password = isMade
    ? randomBytes(18).toString('base64url')
    : (await text(terminal.input)).split(/\r?\n/, 1)[0]!
  const what = await addUser(file, add, password)
  if (isMade) terminal.out(`${password}\n`)
  terminal.err(`user ${add} ${what} in ${file}${isMade ? '; the password is shown this once' : ''}\n`)
  return exitCodes.ok
}
