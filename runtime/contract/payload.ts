/**
 * Bytes of a frame as text and as JSON, the first step of most bridges. Nothing here throws: what is not UTF-8 or
 * not JSON is answered with the reason. How large a payload may be is decided before a bridge sees it.
 */
import { isUtf8 } from 'node:buffer'

/** A value, or why there is none. */
export type Parsed<Value> =
  | { readonly value: Value; readonly reason?: undefined }
  | { readonly value?: undefined; readonly reason: string }

/** The payload as text, without a byte order mark. */
export function textOf(payload: Uint8Array): Parsed<string> {
  if (!isUtf8(payload)) return { reason: 'the payload is not UTF-8' }
  const { buffer, byteOffset, byteLength } = payload
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('utf8')
  return { value: text.charCodeAt(0) === 0xfeff ? text.slice(1) : text }
}

/** The payload as JSON (RFC 8259); of a repeated member name the last counts. */
export function jsonOf(payload: Uint8Array): Parsed<unknown> {
  const text = textOf(payload)
  if (text.reason !== undefined) return text
  try {
    return { value: JSON.parse(text.value) as unknown }
  } catch (error) {
    return { reason: `the payload is not JSON: ${error instanceof Error ? error.message : 'unreadable'}` }
  }
}
