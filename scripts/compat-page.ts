/**
 * The page that says what of the NGSI-LD standard is built: every clause of the register with its state and the tests
 * that show it, and the tests of the ETSI suite that do not pass, each with the reason.
 */
import { clauses } from '#test/spec/ngsi-ld/clauses.ts'
import { answeredOtherwise, testsOfOurHalf } from '#test/spec/ngsi-ld/etsi-suite.ts'

export function compatPage(): string {
  const rows = clauses.map(({ clause, title, state, tests, note }) => {
    const links = tests.map((test) => `[${nameOf(test)}](../test/${test})`)
    return `| ${clause} | ${title} | ${state} | ${[...links, ...(note === undefined ? [] : [note])].join('; ')} |`
  })
  const against = answeredOtherwise.map(
    ({ test, clause, kind, why }) => `| ${test} | ${clause} | ${kind} | ${why} |`,
  )
  const failing = answeredOtherwise.flatMap(({ test }) => test.split(', ')).length
  const built = clauses.filter(({ state }) => state === 'done').length
  return `# NGSI-LD, clause by clause

What of ETSI GS CIM 009 is built: ${built} of ${clauses.length} rows are *done*, which is claimed only where a test shows it; of those
that are *partial* the last column says what is missing, or is otherwise than the clause. Numbers are those of V1.8.1;
what came with V1.9.1 says so. [Compatibility](compatibility.md) tells what differs by profile.

Generated from \`test/spec/ngsi-ld/clauses.ts\` and \`etsi-suite.ts\` beside it by \`npm run document\`.

| Clause | What | State | Shown by |
| --- | --- | --- | --- |
${rows.join('\n')}

## Tests of the ETSI suite that do not pass

Of our half of the suite, ${testsOfOurHalf} tests: ${testsOfOurHalf - failing} pass, with a fresh gateway for each folder, profile 1.9 and
\`history.instancesPerAnswer: 30\`, which the suite expects. *standard*: what the test expects, or sends, contradicts the text
of the clause. *test*: it cannot pass, whatever is answered. *choice*: the text allows what it expects, too. *internet*: it
asks for a host there.

| Test | Clause | Kind | Why |
| --- | --- | --- | --- |
${against.join('\n')}
`
}

const nameOf = (test: string): string => test.split('/').at(-1)!.replace('.test.ts', '')
