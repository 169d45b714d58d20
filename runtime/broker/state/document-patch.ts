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
/** The beginning of an instance that is a string. */
const rendered = new RegExp(`\\{"type":"Property","value":${string}`, 'y')
const valueAt = '{"type":"Property","value":'.length

/** The text with the published value of a stream; undefined if only parsing shows where the value belongs. */
export function patchText(
  text: string,
  { name, dataset, mirror, time, value }: Pick<LiveStream, 'name' | 'dataset' | 'mirror' | 'time' | 'value'>,
): string | undefined {
  const observedAt = `"${msToDateTime(time)}"`
  const found = dataset === '' ? instanceOf(text, name, observed) : undefined
  if (found === undefined) return undefined
  const [whole, between] = found
  const tail = text.slice(found.index + whole.length)
  const patched = `${text.slice(0, found.index + valueAt)}${JSON.stringify(value)}${between}${observedAt}${tail}`
  if (mirror === undefined) return patched
  const mirrored = instanceOf(patched, mirror, rendered)
  if (mirrored === undefined) return undefined
  const end = mirrored.index + mirrored[0].length
  return `${patched.slice(0, mirrored.index + valueAt)}${observedAt}${patched.slice(end)}`
}

/**
 * The only instance of an attribute, if it has this form. A quote inside a string is preceded by a backslash,
 * so a quoted name before a colon is a member name. If that name occurs only once, it is the attribute.
 */
function instanceOf(text: string, name: string, form: RegExp): RegExpExecArray | undefined {
  const member = `${JSON.stringify(name)}:`
  const at = text.indexOf(member)
  if (at < 1 || text[at - 1] === '\\' || text.includes(member, at + 1)) return undefined
  form.lastIndex = at + member.length
  return form.exec(text) ?? undefined
}
