/**
 * Recognizes addresses of this machine. Clients can make the gateway send requests (context documents,
 * notifications); these must not reach this machine once the listeners are open to other machines. A name is
 * checked by the address it resolves to when the connection is made, so that it cannot resolve to another one
 * later.
 */
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { GatewayError } from '#base/register/errors.ts'

const ownAddresses = new BlockList()
ownAddresses.addSubnet('127.0.0.0', 8, 'ipv4')
ownAddresses.addSubnet('0.0.0.0', 8, 'ipv4')
ownAddresses.addAddress('::1', 'ipv6')
ownAddresses.addAddress('::', 'ipv6')

/** Whether the host of a setting or URL is this machine: a loopback address, or the name localhost. */
export function isLoopback(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  const family = isIP(bare)
  if (family === 0) return /^(?:.+\.)?localhost\.?$/i.test(bare)
  return ownAddresses.check(bare, family === 6 ? 'ipv6' : 'ipv4')
}

/**
 * Whether a listener at this host is reachable from this machine only; 0.0.0.0 and :: are reachable from
 * anywhere.
 */
export function isLoopbackListener(host: string): boolean {
  return isLoopback(host) && host !== '::' && !host.startsWith('0.')
}

/** The URL host by which this machine reaches a listener; one on all addresses also listens on loopback. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

/** Why a request to an address of this machine is refused, with the setting that would allow it. */
export const refusedLoopback = (host: string): string =>
  `${host} is this machine, and outbound.allowLoopback is false`

/** A `lookup` for node:net and node:http that fails for names that resolve to this machine. */
export const lookupRemote: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, '', 0)
    const elsewhere = addresses.filter(({ address }) => !isLoopback(address))
    const first = elsewhere[0]
    if (first === undefined) {
      return callback(new GatewayError('peer.loopback', refusedLoopback(hostname), { hostname }), '', 0)
    }
    if (options.all === true) callback(null, elsewhere)
    else callback(null, first.address, first.family)
  })
}
