/**
 * Probes whether a server listens: a TCP connection, closed at once. It does not check the protocol; the next
 * delivery does.
 */
import { connect } from 'node:net'
import { limits } from '#base/limits/limits.ts'

/** The address to connect to. */
export interface Address {
  readonly host: string
  readonly port: number
}

const defaultPorts: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'mqtt:': 1883,
  'mqtts:': 8883,
}

/** Scheme, host and port of a URI as a key, and the address; undefined for any other URI. */
export function originOf(uri: string): { key: string; address: Address } | undefined {
  if (!URL.canParse(uri)) return undefined
  const { protocol, hostname, port } = new URL(uri)
  const number = port === '' ? defaultPorts[protocol] : Number(port)
  if (number === undefined || hostname === '') return undefined
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return { key: `${protocol}//${hostname}:${number}`, address: { host, port: number } }
}

/** A URI without the parts that may contain secrets: user, password and query. */
export function shownUri(uri: string): string {
  if (!URL.canParse(uri)) return uri
  const { protocol, host, pathname } = new URL(uri)
  return host === '' ? uri : `${protocol}//${host}${pathname}`
}

/** Whether a connection could be made within `deliveryConnectMs`. Never rejects. */
export function probe(address: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...address, autoSelectFamilyAttemptTimeout: 1000 })
    const end = (isUp: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isUp)
    }
    const timer = setTimeout(() => end(false), limits.deliveryConnectMs.value)
    socket.once('connect', () => end(true))
    socket.on('error', () => end(false))
  })
}
