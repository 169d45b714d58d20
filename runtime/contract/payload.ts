/**
 * Decodes the payload of a frame as text or JSON, the first step of most bridges. Nothing here throws: a
 * payload that is not UTF-8 or not JSON yields a reason. The caller bounds the size of the payload.
 */
import { isUtf8 } from 'node:buffer'

/** A value, or the reason why there is none. */
export type Parsed<Value> =
  | { readonly value: Value; readonly reason?: undefined }
  | { readonly value?: undefined; readonly reason: string }

/** The payload as text, without a byte order mark. */
export function textOf(payload: Uint8Array): Parsed<string> {
  const { buffer, byteOffset, byteLength } = payload
  const bytes = payload instanceof Buffer ? payload : Buffer.from(buffer, byteOffset, byteLength)
  const text = bytes.toString('utf8')
  // Decoding puts this character in place of bytes that are not UTF-8.
  if (text.includes('\ufffd') && !isUtf8(bytes)) return { reason: 'the payload is not UTF-8' }
  return { value: text.charCodeAt(0) === 0xfeff ? text.slice(1) : text }
}

/** The payload as JSON (RFC 8259); if a member name is repeated, the last one is used. */
export function jsonOf(payload: Uint8Array): Parsed<unknown> {
  const text = textOf(payload)
  if (text.reason !== undefined) return text
  try {
    return { value: JSON.parse(text.value) as unknown }
  } catch (error) {
    return { reason: `the payload is not JSON: ${error instanceof Error ? error.message : 'unreadable'}` }
  }
}
