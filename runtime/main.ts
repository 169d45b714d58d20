/**
 * Where the process begins: the words of the command line in, an exit code out. No logic lives here.
 */
import { commandLine } from '#cli/command-line.ts'
import { processTerminal } from '#cli/terminal/terminal.ts'

process.exitCode = await commandLine(process.argv.slice(2), processTerminal())
