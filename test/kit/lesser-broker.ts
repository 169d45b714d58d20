/**
 * A broker that knows less than ours: passes requests on to a gateway, but for those whose path it does not know, which it
 * answers itself. So what a foreign broker is to an uplink can be seen with a centre whose contents are known.
 */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LesserBroker {
  readonly url: string
  /** Method and path of what came, in order, since the last call. */
  asked(): readonly string[]
  close(): Promise<void>
}

/**
 * `unknown` are the beginnings of paths with the status they are answered with; with `lost` a request is passed on and its answer
 * is not.
 */
export async function createLesserBroker(
  port: number,
  unknown: Readonly<Record<string, number | 'lost'>>,
): Promise<LesserBroker> {
  let asked: string[] = []
  const server = createServer((incoming, response) => {
    const { method = 'GET', url = '/', headers } = incoming
    asked.push(`${method} ${url}`)
    const [, status] = Object.entries(unknown).find(([path]) => url.startsWith(path)) ?? []
    if (typeof status === 'number') {
      incoming.resume()
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end('{"title":"not known here"}')
      return
    }
    const passed = request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      if (status === 'lost') {
        response.destroy()
        return
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return Object.freeze({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked() {
      const some = asked
      asked = []
      return some
    },
    close() {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  } satisfies LesserBroker)
}
