/** The body of a component's request is available at any time, however late it is read. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createOutflow } from '#base/process/outflow.ts'
import { createLog } from '#base/register/log.ts'
import { createMetrics } from '#base/register/metrics.ts'
import { systemClock } from '#base/time/clock.ts'
import { createHttpServer, type HttpServer } from '#http/listener/http-server.ts'
import { createComponentRoutes } from '#http/operator/components.ts'
import { createBodies } from '#http/request/body.ts'

let server: HttpServer | undefined
afterEach(() => server?.close())

it('can be read late, and twice', async () => {
  const routes = createComponentRoutes(
    {
      has: () => true,
      ofPrefix: () => undefined,
      status: () => ({}),
      readsStreams: () => false,
      direct: () => undefined,
      async fetch(_name, _request, environment) {
        await delay(50)
        const first = await environment.body()
        return Response.json([first.toString(), (await environment.body()).length])
      },
    },
    createBodies(),
  )
  const log = createLog({ level: 'error', clock: systemClock, write: () => undefined })
  const outflow = createOutflow({ clock: systemClock, log, metrics: createMetrics() })
  const refuse = () => new Response(null, { status: 500 })
  server = await createHttpServer(
    { fetch: (request, env) => routes.of('any', request, env), refuse: refuse as never, outflow, log },
    { host: '127.0.0.1', port: 0 },
  )
  for (const body of ['text', '']) {
    const answer = await fetch(`${server.url}/x`, { method: 'POST', body, signal: AbortSignal.timeout(5000) })
    expect(await answer.json()).toEqual([body, body.length])
  }
})
