/**
 * The one gate before a change leaves a desk: shape, lint, types, dead code, then the quick tests. Every step
 * runs even when an earlier one failed, so that one pass shows all there is to mend. It changes no file.
 */
import { spawnSync } from 'node:child_process'

const steps: readonly (readonly [string, string])[] = [
  ['format and lint', 'biome check --error-on-warnings'],
  ['promises and types in use', 'oxlint --type-aware --deny-warnings'],
  ['types', 'tsc --noEmit'],
  ['dead code', 'knip'],
  ['tests', 'vitest run --project tidy --project unit --project spec --project property'],
]

const failed = steps.filter(([title, command]) => {
  const started = performance.now()
  const [program, ...rest] = command.split(' ')
  process.stdout.write(`\n== ${title}: ${command}\n`)
  const { status } = spawnSync(program!, rest, { stdio: 'inherit' })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  process.stdout.write(`== ${title}: ${status === 0 ? 'ok' : 'FAILED'} (${seconds} s)\n`)
  return status !== 0
})

process.stdout.write(
  failed.length === 0 ? '\nok\n' : `\nnot ok: ${failed.map(([title]) => title).join(', ')}\n`,
)
process.exitCode = failed.length === 0 ? 0 : 1
