/**
 * A newer value laid into the text of a document without reading it: most attributes that devices observe begin with a
 * scalar, a unit and a time, and their place in the text is plain. Where it is not, nothing is said and the document has to be
 * read; where something is said, it is the text that reading, laying and writing would give.
 */
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import type { LiveStream } from './unwritten.ts'

const string = String.raw`"(?:[^"\\]|\\.)*"`
const unit = `(?:,"unitCode":${string})?`
const scalar = `(?:${string}|-?[\\d.eE+-]+|true|false|null)`
/** The beginning of an instance that is a scalar observed at a time. */
const observed = new RegExp(`\\{"type":"Property","value":${scalar}(${unit},"observedAt":)"[^"]*"`, 'y')
/** The beginning of an instance that is a text. */
const rendered = new RegExp(`\\{"type":"Property","value":${string}`, 'y')
const valueAt = '{"type":"Property","value":'.length

/** The text with the published value of a stream; undefined where only reading it tells where that belongs. */
export function layText(
  text: string,
  { name, dataset, mirror, time, value }: Pick<LiveStream, 'name' | 'dataset' | 'mirror' | 'time' | 'value'>,
): string | undefined {
  const observedAt = `"${msToDateTime(time)}"`
  const found = dataset === '' ? instanceOf(text, name, observed) : undefined
  if (found === undefined) return undefined
  const [whole, between] = found
  const tail = text.slice(found.index + whole.length)
  const laid = `${text.slice(0, found.index + valueAt)}${JSON.stringify(value)}${between}${observedAt}${tail}`
  if (mirror === undefined) return laid
  const mirrored = instanceOf(laid, mirror, rendered)
  if (mirrored === undefined) return undefined
  const end = mirrored.index + mirrored[0].length
  return `${laid.slice(0, mirrored.index + valueAt)}${observedAt}${laid.slice(end)}`
}

/**
 * The only instance of an attribute, if it looks like that. Quotes within a string have a backslash before them, so a name
 * in quotes before a colon is that of a member; and where there is one of this name, it is the attribute.
 */
function instanceOf(text: string, name: string, form: RegExp): RegExpExecArray | undefined {
  const member = `${JSON.stringify(name)}:`
  const at = text.indexOf(member)
  if (at < 1 || text[at - 1] === '\\' || text.includes(member, at + 1)) return undefined
  form.lastIndex = at + member.length
  return form.exec(text) ?? undefined
}
