/**
 * Which addresses are of one broker: this machine has several names, and whoever registers a broker by another one means the same.
 * Pure. A broker keeps the address that it was registered with, since it may listen at that one alone.
 */

const loopbacks: readonly string[] = ['localhost', '127.0.0.1', '[::1]']

/** The same text for all addresses of one broker; what is no URL is its own. */
export function placeOf(address: string): string {
  const url = URL.parse(address)
  if (url === null || !loopbacks.includes(url.hostname)) return address
  url.hostname = 'localhost'
  return url.href.replace(/\/+$/, '')
}

/** The other addresses of a broker, which count as registered with it. */
export function otherAddressesOf(address: string): string[] {
  const own = URL.parse(address)
  if (own === null || !loopbacks.includes(own.hostname)) return []
  return loopbacks.flatMap((hostname) => {
    const url = new URL(own)
    url.hostname = hostname
    return hostname === own.hostname ? [] : [url.href.replace(/\/+$/, '')]
  })
}
