/**
 * Recognizes addresses of the same broker: loopback has several names. Pure functions. A broker keeps the
 * address it was registered with, because it may listen on that one only.
 */

const loopbacks: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** Returns the same text for all addresses of a broker; text that is not a URL is returned unchanged. */
export function canonicalAddress(address: string): string {
  const url = URL.parse(address)
  if (url === null || !loopbacks.includes(url.hostname)) return address
  url.hostname = 'localhost'
  return url.href.replace(/\/+$/, '')
}

/** The other addresses of a broker, which count as registered too. */
export function otherAddressesOf(address: string): string[] {
  const own = URL.parse(address)
  if (own === null || !loopbacks.includes(own.hostname)) return []
  return loopbacks.flatMap((hostname) => {
    const url = new URL(own)
    url.hostname = hostname
    return hostname === own.hostname ? [] : [url.href.replace(/\/+$/, '')]
  })
}
