/**
 * Splits a SenML name into device and field. RFC 8428 has one global name per quantity, but the gateway needs
 * the device part. The base name is the device, because devices repeat it for all their quantities. If the
 * base name is missing or used alone, the last segment of the name is the field.
 */

export interface SenmlChannel {
  readonly device: string
  readonly field: string
}

/** RFC 8428 4.5.1: the only characters allowed in a resolved name, and at its start. */
const allowed = /^[A-Za-z0-9][A-Za-z0-9\-:./_]*$/

export const isName = (name: string): boolean => allowed.test(name)

/**
 * @param base the current base name, possibly empty
 * @param name the name of the record, possibly empty
 * @param local the device of names without segments, such as `temp`; possibly empty
 * @returns undefined if the names contain no device
 */
export function channelOf(base: string, name: string, local: string): SenmlChannel | undefined {
  const field = withoutLeading(name)
  if (base === '' || field === '') return lastSegment(base === '' ? name : base, local)
  return { device: withoutTrailing(base), field }
}

function lastSegment(whole: string, local: string): SenmlChannel | undefined {
  const name = withoutTrailing(whole)
  const cut = lastSeparator(name)
  const device = cut < 0 ? local : withoutTrailing(name.slice(0, cut))
  const field = name.slice(cut + 1)
  return device === '' || field === '' ? undefined : { device, field }
}

/** A urn:dev name also separates its parts by `_` (RFC 9039 3.1). */
function lastSeparator(name: string): number {
  const cut = Math.max(name.lastIndexOf(':'), name.lastIndexOf('/'))
  return name.startsWith('urn:dev:') ? Math.max(cut, name.lastIndexOf('_')) : cut
}

function withoutTrailing(name: string): string {
  let end = name.length
  while (end > 0 && isSeparator(name.charCodeAt(end - 1))) end--
  return name.slice(0, end)
}

function withoutLeading(name: string): string {
  let start = 0
  while (start < name.length && isSeparator(name.charCodeAt(start))) start++
  return name.slice(start)
}

/** `:`, `/` or `_` */
const isSeparator = (code: number): boolean => code === 0x3a || code === 0x2f || code === 0x5f
