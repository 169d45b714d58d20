/**
 * Which addresses are this machine itself. Requests that others make us send (context documents, notifications)
 * must not reach them once the listeners are open to others. Names are judged by the address they resolve to, at
 * the moment of connecting, so that a name cannot change its meaning in between.
 */
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { GatewayError } from '#base/register/errors.ts'

const ownAddresses = new BlockList()
ownAddresses.addSubnet('127.0.0.0', 8, 'ipv4')
ownAddresses.addSubnet('0.0.0.0', 8, 'ipv4')
ownAddresses.addAddress('::1', 'ipv6')
ownAddresses.addAddress('::', 'ipv6')

/** Whether a host, as it stands in a setting or URL, is this machine: an address, or the name localhost. */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const family = isIP(bare)
  if (family === 0) return /^(?:.+\.)?localhost\.?$/i.test(bare)
  return ownAddresses.check(bare, family === 6 ? 'ipv6' : 'ipv4')
}

/** How a URL names the host of a listener to this machine; one on all addresses is at the loopback address, too. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/** A `lookup` for node:net and node:http that fails where a name resolves to this machine. */
export const lookupRemote: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0)
    const elsewhere = addresses.filter(({ address }) => !isLoopback(address))
    const first = elsewhere[0]
    if (first === undefined) {
      return callback(new GatewayError('peer.loopback', `${hostname} is this machine`, { hostname }), '', 0)
    }
    if (options.all === true) callback(null, elsewhere)
    else callback(null, first.address, first.family)
  })
}
