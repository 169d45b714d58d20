/**
 * A gateway with its index, for all tests of a file: over a folder of its own, opened before the first and closed after the last.
 * Whoever asks the index by `find` gets what was written before.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { type GatewayInside, startGatewayInside } from './gateway-inside.ts'
import type { HttpClient, Reply } from './http-gateway.ts'

type Texts = Readonly<Record<string, string>>

/** The index answers with all that was written before. */
export const latest: Texts = { 'Selvedge-Index-Position': 'latest' }

/** Asks the index of a gateway for entities. */
export const findAt = (client: HttpClient, parameters: Texts, headers: Texts = latest): Promise<Reply> =>
  client.send('GET', `/indexing/ngsi-ld/v1/entities?${new URLSearchParams(parameters)}`, undefined, headers)

/** Settles when the index of a gateway is built. */
export const indexBuilt = (client: HttpClient): Promise<void> =>
  vi.waitFor(async () => expect((await client.get('/indexing/api/health')).status).toBe(200), 20_000)

export interface IndexOfFile extends HttpClient {
  readonly httpPort: number | undefined
  find(parameters: Texts, headers?: Texts): Promise<Reply>
}

/** @param entities what is there when the first test begins */
export function indexOfFile(entities: readonly object[] = []): IndexOfFile {
  let folder: string
  let gateway: GatewayInside
  const site: IndexOfFile = {
    ask: (...args) => gateway.ask(...args),
    get: (...args) => gateway.get(...args),
    send: (...args) => gateway.send(...args),
    find: (...args) => findAt(gateway, ...args),
    get httpPort() {
      return gateway.httpPort
    },
  }
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-index-'))
    gateway = await startGatewayInside(folder)
    await indexBuilt(site)
    if (entities.length === 0) return
    const made = await site.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    expect(made.status).toBe(201)
    expect((await site.find({ type: 'IotStream' })).status).toBe(200)
  })
  afterAll(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return site
}
