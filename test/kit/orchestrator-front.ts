/**
 * Puts an orchestrator before a gateway of the tests, so that the tests of NGSI-LD run through it:
 * SELVEDGE_SPEC_THROUGH=orchestrator in process, =orchestrator-http over a socket as in front of another broker.
 */
import { join } from 'node:path'
import type { CapabilityPorts } from '#host/capabilities.ts'
import { createPlugins, type Plugins } from '#host/plugins.ts'
import type { App } from '#http/app.ts'
import { createHttpServer, type HttpServer } from '#http/listener/http-server.ts'
import { createEntrance, type EntranceRules } from '#http/listener/listener-access.ts'
import type { HttpServerPorts } from '#http/listener/upgrade.ts'
import type { Components } from '#http/operator/components.ts'
import orchestrator from '#plugins/orchestrator/plugin.ts'

export interface FrontPorts
  extends Omit<CapabilityPorts, 'serve' | 'pass' | 'address' | 'addresses' | 'isOwn'> {
  readonly dataFolder: string
  readonly outflow: HttpServerPorts['outflow']
}

export interface OpenFront {
  readonly components: Components
  /** Opens its listener. @param url of the gateway. */
  listen(app: App, url: string, rules: EntranceRules): Promise<HttpServer>
  close(): Promise<void>
}

/** @param name orchestrator or orchestrator-http. */
export function openFront(name: string, ports: FrontPorts): OpenFront {
  if (!/^orchestrator(?:-http)?$/.test(name))
    throw new TypeError(`SELVEDGE_SPEC_THROUGH must be orchestrator or orchestrator-http, got ${name}`)
  let plugins: Plugins | undefined
  let server: HttpServer | undefined
  const running = (): Plugins => plugins!
  return {
    components: {
      has: (plugin) => plugin === 'orchestrator',
      ofPrefix: () => undefined,
      readsStreams: () => true,
      status: () => running().status(),
      direct: (...given) => running().direct(...given),
      fetch: (...given) => running().fetch(...given),
    },
    async listen(app, url, rules) {
      const settings = {
        broker: name === 'orchestrator' ? 'mdr' : url,
        ranking: 'ranking',
        timeoutMs: 60_000,
        amqp: {},
        cache: { maxAgeMs: 2_000 },
      }
      plugins = createPlugins(
        {
          ...ports,
          serve: (request, env) => app.fetch(request, env),
          pass: (request, arrival) => app.fetch(request, arrival),
          address: () => url,
          addresses: () => [],
          isOwn: () => false,
        },
        {
          allowsLoopback: true,
          folder: join(ports.dataFolder, 'plugins'),
          bridges: {},
          gatewayName: () => 'selvedge-front',
        },
        [{ name: 'orchestrator', load: async () => orchestrator, settings }],
      )
      await plugins.start()
      const { refuse } = app
      const orchestrated = app.component('orchestrator')
      // Other paths are those of the gateway itself.
      const fetch: App['fetch'] = (request, env) =>
        /^[^?]*:\/\/[^/]*\/ngsi-ld\//.test(request.url) ? orchestrated(request, env) : app.fetch(request, env)
      const direct: App['direct'] = (request) => running().direct('orchestrator', request)
      const entrance = createEntrance({ fetch, refuse, direct }, rules)
      const { outflow, log } = ports
      server = await createHttpServer({ ...entrance, refuse, outflow, log }, { host: '127.0.0.1', port: 0 })
      return server
    },
    async close() {
      await server?.close()
      await plugins?.close()
    },
  }
}
