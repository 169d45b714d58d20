/** Detection of ports in use, and the fallback to any free port. */
import { type AddressInfo, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { portOrAny, whyTaken } from './ports.ts'

it('detects a port in use, and uses any free port instead', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const words: string[] = []
  const terminal = {
    out: (text: string) => void words.push(text),
    err: (text: string) => void words.push(text),
    input: Readable.from([]),
    env: {},
    columns: undefined,
  }
  expect(await whyTaken('127.0.0.1', port)).toBe('EADDRINUSE')
  expect(await portOrAny('127.0.0.1', port, terminal)).toBe(0)
  expect(words).toEqual([`Port ${port} is in use; using another one.\n`])
  await new Promise((resolve) => server.close(resolve))
  expect(await whyTaken('127.0.0.1', port)).toBeUndefined()
  expect(await portOrAny('127.0.0.1', port, terminal)).toBe(port)
})

it('reports why an address cannot be bound', async () => {
  expect(await whyTaken('192.0.2.1', 0)).toBe('EADDRNOTAVAIL')
})
