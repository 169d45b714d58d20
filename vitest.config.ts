/**
 * How tests run: seven projects, told apart by place. Real files, sockets and processes, so five at a time (forks), since
 * many wait more than they work. The files of a project share these processes: one for each file would spend a fifth
 * of all on loading what the one before had loaded. Ceilings that a file lowers are what they were for the next
 * (test/kit/shared-process.ts). Nothing is aliased or mocked here: `#room/...` comes from the `imports` of package.json, as
 * it does when the product runs.
 */
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { summaryReporter } from './test/kit/summary-reporter.ts'

if (Number(process.versions.node.split('.')[0]) < 24) {
  throw new TypeError(
    `Tests run under the pinned Node 24, this is ${process.version}. Use \`npm test -- PATH\`,` +
      ' or `node_modules/.bin/node node_modules/vitest/vitest.mjs run PATH`.',
  )
}

// Each gateway within a test has threads that load sources of their own: what was stripped and compiled once is kept.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/tests')

const project = (
  name: string,
  include: string[],
  testTimeout: number,
  env: Readonly<Record<string, string>> = {},
) => ({
  extends: true as const,
  test: { name, include, testTimeout, hookTimeout: Math.max(testTimeout, 30_000), env },
})

/** A part of the tests of NGSI-LD runs through the orchestrator, too; `npm run orchestrator-spec` runs all. */
const proxied = [
  '05.06-provision/01-create-entity',
  '05.06-provision/04-partial-update',
  '05.07-consumption/01-retrieve-entity',
  '06-http-binding/03-02-errors',
]

// As Node resolves them: with `development`, graphql would be there twice, once for us and once for its servers.
const conditions = ['module', 'module-sync', 'node', 'import', 'default']

export default defineConfig({
  ssr: { resolve: { conditions, externalConditions: ['node', 'module-sync'] } },
  test: {
    pool: 'forks',
    maxWorkers: 5,
    isolate: false,
    setupFiles: ['test/kit/shared-process.ts'],
    // What holds at once on a quiet machine may take many seconds on a busy one.
    expect: { poll: { timeout: 100_000 } },
    reporters: ['default', summaryReporter()],
    coverage: { provider: 'v8', include: ['runtime/**/*.ts', 'firmware-bridges/**/*.ts', 'plugins/**/*.ts'] },
    projects: [
      project(
        'unit',
        ['runtime/**/*.test.ts', 'firmware-bridges/**/*.test.ts', 'plugins/**/*.test.ts'],
        120_000,
      ),
      project('spec', ['test/spec/**/*.test.ts'], 300_000),
      project(
        'proxied',
        proxied.map((file) => `test/spec/ngsi-ld/${file}.test.ts`),
        300_000,
        { SELVEDGE_SPEC_THROUGH: 'orchestrator' },
      ),
      project('property', ['test/property/**/*.test.ts'], 300_000),
      project('tidy', ['test/tidy/**/*.test.ts', 'test/{kit,power-cut,interop}/**/*.test.ts'], 180_000),
      project('smoke', ['test/smoke/**/*.test.ts'], 300_000),
      project('crash', ['test/crash/**/*.test.ts', 'test/judge/**/*.test.ts'], 600_000),
    ],
  },
})
