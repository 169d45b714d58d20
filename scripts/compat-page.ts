/**
 * Generates the page on NGSI-LD conformance: every clause with its state and the tests that verify it, and the tests of
 * the ETSI suite that do not pass, each with the reason.
 */
import { clauses } from '#test/spec/ngsi-ld/clauses.ts'
import { applicableTests, failingTests } from '#test/spec/ngsi-ld/etsi-suite.ts'

export function compatPage(): string {
  const rows = clauses.map(({ clause, title, state, tests, note }) => {
    const links = tests.map((test) => `[${nameOf(test)}](../test/${test})`)
    return `| ${clause} | ${title} | ${state} | ${[...links, ...(note === undefined ? [] : [note])].join('; ')} |`
  })
  const against = failingTests.map(
    ({ test, clause, kind, why }) => `| ${test} | ${clause} | ${kind} | ${why} |`,
  )
  const failing = failingTests.flatMap(({ test }) => test.split(', ')).length
  const built = clauses.filter(({ state }) => state === 'done').length
  return `# NGSI-LD, clause by clause

This page lists the implemented clauses of ETSI GS CIM 009: ${built} of ${clauses.length} rows are *done*, each verified by the listed
tests; for *partial* rows the last column states what is missing or differs from the clause. Numbers are those of V1.8.1;
clauses added in V1.9.1 are marked 1.9. [compatibility.md](compatibility.md) is
about something else: versions, deprecation, and differences between profiles.

Generated from \`test/spec/ngsi-ld/clauses.ts\` and \`etsi-suite.ts\` by \`npm run document\`.

| Clause | Subject | State | Tests and notes |
| --- | --- | --- | --- |
${rows.join('\n')}

## Tests of the ETSI suite that do not pass

Of the ${applicableTests} tests of the suite that apply to this gateway, ${applicableTests - failing} pass, with a fresh gateway for each folder, profile 1.9 and
\`history.instancesPerAnswer: 30\`, which the suite expects. *standard*: the test expects or sends something that
contradicts the clause. *test*: it cannot pass with any response. *choice*: the clause also allows what the test expects.
*internet*: it requires a host on the Internet.

| Test | Clause | Kind | Why |
| --- | --- | --- | --- |
${against.join('\n')}
`
}

const nameOf = (test: string): string => test.split('/').at(-1)!.replace('.test.ts', '')
