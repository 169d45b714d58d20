/**
 * Writes a newer value into the text of a document without parsing it. Most observed attributes begin with a
 * scalar, a unit and a time, so their position in the text is unambiguous. Otherwise the result is undefined
 * and the caller parses the document. A result equals the text that parsing, overlaying and serializing would
 * give.
 */
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { LiveStream } from './unwritten.ts'

const string = String.raw`"(?:[^"\\]|\\.)*"`
const unit = `(?:,"unitCode":${string})?`
const scalar = `(?:${string}|-?[\\d.eE+-]+|true|false|null)`
/** The beginning of an instance that is a scalar with observedAt. */
const observed = new RegExp(`\\{"type":"Property","value":${scalar}(${unit},"observedAt":)"[^"]*"`, 'y')
/** The beginning of an instance that is a string; nothing after the value matches. */
const rendered = new RegExp(`\\{"type":"Property","value":${string}()`, 'y')
const valueAt = '{"type":"Property","value":'.length

/** The text with the published value of a stream; undefined if only parsing shows where the value belongs. */
export function patchText(
  text: string,
  { name, dataset, mirror, time, value }: Pick<LiveStream, 'name' | 'dataset' | 'mirror' | 'time' | 'value'>,
): string | undefined {
  if (dataset !== '') return undefined
  const observedAt = `"${msToDateTime(time)}"`
  const patched = replaced(text, name, observed, (between) => JSON.stringify(value) + between + observedAt)
  return patched === undefined || mirror === undefined
    ? patched
    : replaced(patched, mirror, rendered, () => observedAt)
}

/**
 * Replaces the value of the only instance of an attribute, and what its form matches after the value;
 * undefined if the text has no such instance. A quote inside a string is preceded by a backslash, so a quoted
 * name before a colon is a member name. If that name occurs only once, it is the attribute.
 */
function replaced(
  text: string,
  name: string,
  form: RegExp,
  by: (captured: string) => string,
): string | undefined {
  const member = `${JSON.stringify(name)}:`
  const at = text.indexOf(member)
  if (at < 1 || text[at - 1] === '\\') return undefined
  const start = at + member.length
  form.lastIndex = start
  const captured = form.exec(text)?.[1]
  if (captured === undefined) return undefined
  const end = form.lastIndex
  if (text.includes(member, start)) return undefined
  return text.slice(0, start + valueAt) + by(captured) + text.slice(end)
}
