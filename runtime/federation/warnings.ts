/**
 * What went wrong with a source, as whoever asks is warned of it (GS CIM 009, 6.3.17). A source that asked others itself
 * warns of these; that is passed on, up to a bound, since what they have is missing here as well.
 */
import { limits } from '#base/limits.ts'
import type { Registration } from '#ngsi-ld/registration.ts'
import { agentOf, type SourceAnswer, type Warning } from './sources.ts'

/** What an answer to a question makes the asker warn of: the source itself, then what it warns of. */
export function warningsOf(registration: Registration, answer: SourceAnswer): readonly Warning[] {
  const own = warningOf(registration, answer)
  const told = 'failure' in answer ? [] : passedOn(answer.headers['ngsild-warning'])
  return own === undefined ? told : [own, ...told]
}

function warningOf(registration: Registration, answer: SourceAnswer): Warning | undefined {
  const agent = agentOf(registration)
  if ('failure' in answer) {
    const code = answer.failure === 'resting' ? 199 : 111
    return { code, agent, text: `${registration.id}: ${answer.reason}` }
  }
  if (answer.age !== undefined) {
    const why = answer.isLastKnown === true ? 'cannot be reached' : 'was not asked again yet'
    const text = `${registration.id} ${why}; this is what it told ${answer.age} s ago`
    return { code: 110, agent, text, age: answer.age }
  }
  if (isFine.has(answer.status)) return undefined
  return { code: 199, agent, text: `${registration.id} answered ${answer.status}` }
}

const isFine: ReadonlySet<number> = new Set([200, 201, 203, 204, 206, 404])
const codes = [110, 111, 199, 299] as const

/** Warnings in a header; what is none is passed over. */
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
