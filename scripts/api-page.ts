/**
 * The page of the HTTP interface, from the register behind /openapi.json: every operation with its parameters, and
 * what each parameter means.
 */
import { operations } from '#http/openapi/operations.ts'
import { parameters } from '#http/request/query-parameters.ts'

export function apiPage(): string {
  const tags = Map.groupBy(Object.entries(operations), ([, { tag }]) => tag)
  const sections = [...tags].map(
    ([tag, listed]) =>
      `## ${tag}\n\n| Operation | Does | Parameters | Answers |\n| --- | --- | --- | --- |\n${listed.map(rowOf).join('\n')}`,
  )
  const meanings = Object.entries(parameters).map(([name, [meaning, type]]) => {
    return `| \`${name}\` | ${type ?? 'text'} | ${meaning.replaceAll('|', '\\|')} |`
  })
  return `# HTTP interface

Everything the main listener serves; \`GET /openapi.json\` is the same for programs. Collections are served with and
without a slash at the end. Errors are JSON with \`type\`, \`title\`, \`detail\` and \`status\`; see [errors](errors.md).
411 has no body. The body and the \`Accept\` header of a 415 say which media types are accepted.

Generated from \`runtime/http/openapi/operations.ts\` by \`npm run document\`.

${sections.join('\n\n')}

## Parameters

| Name | Type | Means |
| --- | --- | --- |
${meanings.join('\n')}
`
}

function rowOf([key, { summary, parameters: names = [], answers }]: [
  string,
  (typeof operations)[string],
]): string {
  const listed = names.map((name) => `\`${name}\``).join(' ')
  return `| \`${key}\` | ${summary} | ${listed} | ${Object.keys(answers).join(', ')} |`
}
