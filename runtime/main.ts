/**
 * Entry point of the process: runs the command line and sets the exit code. It contains no logic.
 */
import { commandLine } from '#cli/command-line.ts'
import { processTerminal } from '#cli/terminal/terminal.ts'

process.exitCode = await commandLine(process.argv.slice(2), processTerminal())
