/**
 * The options of the scripts of `npm run`: help goes to standard output and ends with 0, a mistake is told in a line and ends
 * with 64, as with the commands of the gateway.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>['values']

/** The options of the script `name`, whose help this is. Does not return where they are wrong or help is asked for. */
export function optionsOf<const T extends Options>(name: string, help: string, options: T): Values<T> {
  const isHelp = process.argv.slice(2).some((word) => word === '--help' || word === '-h')
  if (isHelp) {
    process.stdout.write(help)
    process.exit(0)
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return wrongUsage(name, (error as Error).message)
  }
}

export function wrongUsage(name: string, why: string): never {
  process.stderr.write(`${name}: ${why.split('. ', 1)[0]}; see --help\n`)
  process.exit(64)
}

/** A whole number of an option. */
export function wholeNumber(name: string, option: string, text: string, least = 0): number {
  const number = text === '' ? Number.NaN : Number(text)
  if (Number.isInteger(number) && number >= least) return number
  return wrongUsage(name, `--${option} is not a whole number${least > 0 ? ` from ${least} on` : ''}`)
}
