/**
 * `selvedge tunnels ls|release` (default ls): lists the gateway names reserved at this centre, and releases
 * one. It edits the file in the data folder, so it needs permissions there. A running gateway reads the file
 * at the next connection.
 */
import { GatewayError } from '#base/register/errors.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import { actionOf, type GivenOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { readTunnelNames, releaseTunnelName, tunnelNamesFile } from '#federation/tunnel-names.ts'

export async function tunnels(given: GivenOptions, terminal: Terminal): Promise<number> {
  const [word = 'ls', name] = given.words
  const action = actionOf(word, ['ls', 'release'])
  if (action === 'ls' && name !== undefined) throw new GatewayError('cli.usage', 'ls takes no NAME')
  if (action === 'release' && name === undefined)
    throw new GatewayError('cli.usage', 'release needs the NAME of a gateway, as shown by ls')
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const file = tunnelNamesFile(loaded.settings.data)
  if (name !== undefined) {
    const isReleased = releaseTunnelName(file, name)
    if (given.has('json')) terminal.out(`${JSON.stringify({ name, isReleased })}\n`)
    terminal.err(
      isReleased
        ? `${name} is free for the next gateway that connects with it\n`
        : `${name} is not reserved\n`,
    )
    return isReleased ? exitCodes.ok : exitCodes.failure
  }
  const names = readTunnelNames(file).map(({ alias, since, from }) => ({ name: alias, since, from }))
  const lines = names.map((one) => `${one.name}  since ${one.since}  from ${one.from}\n`)
  terminal.out(given.has('json') ? `${JSON.stringify(names)}\n` : lines.join(''))
  return exitCodes.ok
}
