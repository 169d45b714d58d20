/**
 * Splits a large JSON list into the texts of its items. An item is parsed when it is read, so memory holds
 * little more than the bytes of the list. The structure of the list is checked in advance; an invalid item is
 * found when it is parsed.
 */
import type { YieldIfDue } from '#base/load/yielding.ts'
import { GatewayError } from '#base/register/errors.ts'

export interface ItemTexts {
  readonly length: number
  /** The bytes of an item without surrounding whitespace. */
  text(index: number): Buffer
}

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const isOpening = (byte: number): boolean => byte === 0x5b || byte === 0x7b
const isClosing = (byte: number): boolean => byte === 0x5d || byte === 0x7d
const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Bytes scanned between two yields. */
const bytesAtOnce = 65_536

/**
 * @param body valid UTF-8, without a byte order mark.
 *
 * @param yieldIfDue awaited after every part of the body.
 *
 * @throws ngsi-ld.invalid-request if it cannot be JSON, ngsi-ld.bad-request-data if it is not a list,
 * http.body-too-large for more than `most` items.
 */
export async function splitList(body: Buffer, most: number, yieldIfDue: YieldIfDue): Promise<ItemTexts> {
  let at = 0
  while (isSpace(body[at])) at++
  if (body[at] !== 0x5b) throw new GatewayError('ngsi-ld.bad-request-data', 'body: must be an array')
  const ends: number[] = []
  const starts: number[] = [++at]
  let depth = 1
  let nextYield = bytesAtOnce
  for (; at < body.length && depth > 0; at++) {
    if (at >= nextYield) {
      nextYield = at + bytesAtOnce
      await yieldIfDue()
    }
    const byte = body[at]!
    if (byte === quote) at = endOfText(body, at)
    else if (isOpening(byte)) depth++
    else if (isClosing(byte)) depth--
    else if (byte === comma && depth === 1) {
      ends.push(at)
      starts.push(at + 1)
      if (starts.length > most) throw new GatewayError('http.body-too-large', `more than ${most} items`)
    }
  }
  ends.push(at - 1)
  while (isSpace(body[at])) at++
  if (depth > 0 || at < body.length || body[ends.at(-1)!] !== 0x5d) throw notJson()
  return Object.freeze({
    length: starts.length,
    text(index) {
      let from = starts[index]!
      let to = ends[index]!
      while (from < to && isSpace(body[from])) from++
      while (to > from && isSpace(body[to - 1])) to--
      if (from === to) throw notJson()
      return body.subarray(from, to)
    },
  } satisfies ItemTexts)
}

/** Strings shorter than this are scanned here, which takes less time than a call of native code. */
const shortText = 32

/** Index of the quotation mark that ends the string at `start`; the body's length if it is unterminated. */
export function endOfText(body: Buffer, start: number): number {
  for (let at = start + 1; at < start + shortText && body[at] !== backslash; at++)
    if (body[at] === quote) return at
  for (let end = body.indexOf(quote, start + 1); end >= 0; end = body.indexOf(quote, end + 1)) {
    let before = end - 1
    while (body[before] === backslash) before--
    if ((end - before) % 2 === 1) return end
  }
  return body.length
}

const notJson = (): GatewayError => new GatewayError('ngsi-ld.invalid-request', 'the body is not JSON')
