/**
 * Computes how many client connections the file descriptors of the process allow. Some are reserved for
 * databases, outgoing connections and files. HTTP and MQTT have fixed shares of the rest, so that neither
 * starves the other.
 */
import { readFileSync } from 'node:fs'
import { limits } from '#base/limits/limits.ts'

export interface ConnectionLimits {
  /** All HTTP listeners together. */
  readonly http: number
  readonly mqtt: number
}

/** Connections that clients may open if the process has this many descriptors. */
export function connectionLimits(descriptors = descriptorLimit()): ConnectionLimits {
  const [http, mqtt] = [limits.httpConnectionsMax.value, limits.mqttClientsMax.value]
  const reserved = Math.min(limits.descriptorsReserved.value, Math.floor(descriptors / 2))
  const share = Math.min(1, (descriptors - reserved) / (http + mqtt))
  return { http: Math.max(1, Math.floor(http * share)), mqtt: Math.max(1, Math.floor(mqtt * share)) }
}

/** The limit of open file descriptors; Node has raised the soft limit to the hard one. */
export function descriptorLimit(): number {
  try {
    const text = readFileSync('/proc/self/limits', 'utf8')
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1]
    return soft === undefined
      ? usualDescriptors
      : soft === 'unlimited'
        ? Number.POSITIVE_INFINITY
        : Number(soft)
  } catch {
    return usualDescriptors
  }
}

const usualDescriptors = 1024
