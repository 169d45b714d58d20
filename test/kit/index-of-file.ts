/**
 * A whole gateway with its index, for all tests of a file, which begin when the index is built. Whoever asks it by `find` gets what
 * was written before.
 */
import { beforeAll, expect, vi } from 'vitest'
import type { HttpClient, Reply } from './http-gateway.ts'
import { type WholeGatewayOfFile, wholeGatewayOfFile } from './whole-gateway-of-file.ts'

type Texts = Readonly<Record<string, string>>

/** The index answers with all that was written before. */
export const latest: Texts = { 'Selvedge-Index-Position': 'latest' }

/** Asks the index of a gateway for entities. */
export const findAt = (client: HttpClient, parameters: Texts, headers: Texts = latest): Promise<Reply> =>
  client.send('GET', `/indexing/ngsi-ld/v1/entities?${new URLSearchParams(parameters)}`, undefined, headers)

/** Settles when the index of a gateway is built. */
export const indexBuilt = (client: HttpClient): Promise<void> =>
  vi.waitFor(async () => expect((await client.get('/indexing/api/health')).status).toBe(200), 20_000)

export interface IndexOfFile extends WholeGatewayOfFile {
  find(parameters: Texts, headers?: Texts): Promise<Reply>
}

/** @param entities what is there when the first test begins */
export function indexOfFile(entities: readonly object[] = []): IndexOfFile {
  const gateway = wholeGatewayOfFile()
  const find: IndexOfFile['find'] = (...args) => findAt(gateway, ...args)
  beforeAll(async () => {
    await indexBuilt(gateway)
    if (entities.length === 0) return
    const made = await gateway.send('POST', '/ngsi-ld/v1/entityOperations/create', entities)
    expect(made.status).toBe(201)
    expect((await find({ type: 'IotStream' })).status).toBe(200)
  })
  return Object.assign(gateway, { find })
}
