/**
 * Warnings about context sources in NGSILD-Warning (GS CIM 009, 6.3.17): 110 for a cached copy, 111 for an
 * invalid answer, 199 for a timeout or a loop, 299 for an error. A source's warnings about its own sources
 * are forwarded, up to a limit, since their entities are missing here as well.
 */
import { limits } from '#base/limits/limits.ts'
import type { Registration } from '#ngsi-ld/federation/registration.ts'
import { agentOf, type SourceAnswer, type Warning } from './sources.ts'

/** Warnings about an answer: first about the source, then those of the source. */
export function warningsOf(registration: Registration, answer: SourceAnswer): readonly Warning[] {
  const own = warningOf(registration, answer)
  const forwarded = 'failure' in answer ? [] : passedOn(answer.headers['ngsild-warning'])
  return own === undefined ? forwarded : [own, ...forwarded]
}

function warningOf(registration: Registration, answer: SourceAnswer): Warning | undefined {
  const agent = agentOf(registration)
  if ('failure' in answer) return { code: 199, agent, text: `${registration.id}: ${answer.reason}` }
  if (answer.age !== undefined) {
    const why =
      answer.isLastKnown === true ? 'cannot be reached' : 'was not queried, because its copy is fresh'
    const text = `${registration.id} ${why}; its data is ${answer.age} s old`
    return { code: 110, agent, text, age: answer.age }
  }
  if (isFine.has(answer.status)) return undefined
  const isLoop = answer.status === 508
  return { code: isLoop ? 199 : 299, agent, text: `${registration.id} answered ${answer.status}` }
}

/** The warning about an answer that is not valid JSON-LD or not an entity. */
export const invalidAnswer = (registration: Registration, error: unknown): Warning => ({
  code: 111,
  agent: agentOf(registration),
  text: error instanceof Error ? error.message : String(error),
})

const isFine: ReadonlySet<number> = new Set([200, 201, 203, 204, 206, 404])
const codes = [110, 111, 199, 299] as const

/** Parses the warnings in a header; invalid ones are skipped. */
function passedOn(header: string | readonly string[] | undefined): readonly Warning[] {
  if (header === undefined) return []
  const line = typeof header === 'string' ? header : header.join(', ')
  const found = line.matchAll(/(?:^|,)\s*(\d{3}) ([^\s",]{1,255}) "([^"\\]{0,1024})"/g)
  const warnings = [...found].flatMap(([, number, agent, text]) => {
    const code = codes.find((one) => String(one) === number)
    return code === undefined ? [] : [{ code, agent: agent!, text: text! }]
  })
  return warnings.slice(0, limits.sourceWarningsMax.value)
}
