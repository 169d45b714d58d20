/** The reference page of the command line: what each command says of itself. */

import { commands } from '#cli/commands.ts'
import { commandHelp, overallHelp } from '#cli/terminal/arguments.ts'

export function commandsPage(): string {
  const block = (text: string): string => `\`\`\`\n${text.trimEnd()}\n\`\`\`\n`
  return [
    '# Commands\n',
    'Generated from `runtime/cli/commands.ts` by `npm run document`.\n',
    block(overallHelp(commands)),
    ...commands.flatMap((command) => [`## selvedge ${command.name}\n`, block(commandHelp(command))]),
  ].join('\n')
}
