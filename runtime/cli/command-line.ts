/**
 * Runs a command line and returns the exit code: finds the command, checks its options, runs it, and prints
 * errors as lines for the operator. Only internal errors show a stack.
 */
import { isGatewayError } from '#base/register/errors.ts'
import { version } from '#base/register/version.ts'
import { type Command, commandHelp, overallHelp, parseOptions } from '#cli/terminal/arguments.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import { nearest } from '#config/schema/nearest.ts'
import { commands } from './commands.ts'

/** Never throws. @returns the exit code. */
export async function commandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args
  if (name === '--help' || name === '-h' || name === 'help') {
    terminal.out(overallHelp(commands))
    return exitCodes.ok
  }
  if (name === '--version') {
    terminal.out(`selvedge ${version}\n`)
    return exitCodes.ok
  }
  const command = commands.find((candidate) => candidate.name === name)
  return command === undefined ? unknownCommand(name, terminal) : runCommand(command, rest, terminal)
}

async function runCommand(command: Command, args: readonly string[], terminal: Terminal): Promise<number> {
  const parsed = parseOptions(command, args)
  if ('mistakes' in parsed) {
    const lines = parsed.mistakes.map((mistake) => `selvedge ${command.name}: ${mistake}\n`)
    terminal.err(`${lines.join('')}See selvedge ${command.name} --help\n`)
    return exitCodes.usage
  }
  if (parsed.given.has('help')) {
    terminal.out(commandHelp(command))
    return exitCodes.ok
  }
  try {
    const run = await command.load()
    return await run(parsed.given, terminal)
  } catch (error) {
    return reportFailure(command.name, error, terminal)
  }
}

function unknownCommand(name: string | undefined, terminal: Terminal): number {
  if (name === undefined) terminal.err(overallHelp(commands))
  else {
    const names = commands.map((command) => command.name)
    const meant = nearest(name, names)
    const hint = meant === undefined ? `commands are ${names.join(', ')}` : `did you mean ${meant}?`
    terminal.err(`selvedge: unknown command ${JSON.stringify(name)}; ${hint}\nSee selvedge --help\n`)
  }
  return exitCodes.usage
}

function reportFailure(name: string, error: unknown, terminal: Terminal): number {
  if (!isGatewayError(error) || error.code === 'gateway.internal') {
    terminal.err(
      `selvedge ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    )
    return exitCodes.internal
  }
  if (error.code === 'cli.usage') {
    terminal.err(`selvedge ${name}: ${error.message}\nSee selvedge ${name} --help\n`)
    return exitCodes.usage
  }
  // The message of a gateway that rejected a request already says what would be right.
  const hint = error.code === 'peer.refused' ? '' : `  ${error.entry.hint}\n`
  terminal.err(`selvedge ${name}: ${error.message}\n${hint}`)
  return error.code.startsWith('config.') ? exitCodes.settings : exitCodes.failure
}
