/**
 * A whole gateway for all tests of a file, over a folder of its own, and a receiver of what it tells: both opened before the
 * first test and closed after the last.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { type GatewayInside, startGatewayInside } from './gateway-inside.ts'
import type { HttpClient } from './http-gateway.ts'
import { createReceiver, type Receiver } from './receiver.ts'

export interface WholeGatewayOfFile extends HttpClient {
  readonly httpPort: number | undefined
  readonly receiver: Receiver
  /** Closes it and opens it anew over the same folder. */
  restart(): Promise<void>
}

/** @param env settings as SELVEDGE_ variables */
export function wholeGatewayOfFile(env: Readonly<Record<string, string>> = {}): WholeGatewayOfFile {
  let folder: string
  let gateway: GatewayInside
  let receiver: Receiver
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-whole-'))
    gateway = await startGatewayInside(folder, env)
    receiver = await createReceiver()
  })
  afterAll(async () => {
    await gateway.close()
    await receiver.down()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    ask: (...args) => gateway.ask(...args),
    get: (...args) => gateway.get(...args),
    send: (...args) => gateway.send(...args),
    get httpPort() {
      return gateway.httpPort
    },
    get receiver() {
      return receiver
    },
    async restart() {
      await gateway.close()
      gateway = await startGatewayInside(folder, env)
    },
  }
}
