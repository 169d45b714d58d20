/** A taken port is found out, and stepped around with a word. */
import { type AddressInfo, createServer } from 'node:net'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { portOrAny, whyTaken } from './ports.ts'

it('tells a taken port from a free one, and takes any instead', async () => {
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
  expect(words).toEqual([`Port ${port} is taken; another one is used.\n`])
  await new Promise((resolve) => server.close(resolve))
  expect(await whyTaken('127.0.0.1', port)).toBeUndefined()
  expect(await portOrAny('127.0.0.1', port, terminal)).toBe(port)
})

it('says why an address cannot be listened at', async () => {
  expect(await whyTaken('192.0.2.1', 0)).toBe('EADDRNOTAVAIL')
})
