/**
 * Whether a page of another origin asks. Browsers let any page open a WebSocket anywhere and say only whose it is, so that
 * who keeps other pages out must look. What names no origin is no page. Pure.
 */

/**
 * Whether the origin that a request names is another than where it was sent.
 * @param addresses Own addresses (URLs), since proxies before the gateway may name it otherwise.
 */
export function isForeign(headers: Headers, addresses: readonly string[]): boolean {
  const origin = headers.get('origin')
  if (origin === null) return false
  // Sandboxed pages are of the origin "null", which is no address.
  const asking = URL.parse(origin)?.host
  const own = [headers.get('host')?.toLowerCase(), ...addresses.map((one) => URL.parse(one)?.host)]
  return asking === undefined || asking === '' || !own.includes(asking)
}
