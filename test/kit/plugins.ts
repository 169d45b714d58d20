/** Plugins over a real broker in this process: they get what the host gives, and the log of its main tenant. */
import { join } from 'node:path'
import { createLog } from '#base/register/log.ts'
import type { Capability, Plugin, RouteEnvironment } from '#contract'
import { createPlugins, type Plugins } from '#host/plugins.ts'
import { coreContext } from '#ngsi-ld/context/context.ts'
import type { OpenBroker } from './broker.ts'
import { modelsIn } from './onnx-models.ts'

/** Starts plugins with these settings, of each the same; their files are in `folder`. */
export async function startPlugins(
  open: OpenBroker,
  folder: string,
  plugins: readonly Plugin<never, Capability>[],
  settings: object = {},
): Promise<Plugins> {
  const host = openPlugins(open, folder, plugins, settings)
  await host.start()
  return host
}

/** The same, to be started. */
export function openPlugins(
  { main, writer, clock, metrics, logged }: OpenBroker,
  folder: string,
  plugins: readonly Plugin<never, Capability>[],
  settings: object = {},
  load = async (plugin: Plugin<never, Capability>): Promise<Plugin<never, Capability>> => plugin,
): Plugins {
  return createPlugins(
    {
      ...main,
      onCommit: main.door.onCommit,
      copyBack: writer.copyBack,
      serve: () => new Response('served', { status: 418 }),
      validity: () => undefined,
      pass: () => new Response('passed', { status: 418 }),
      publish: () => undefined,
      address: () => 'http://here',
      addresses: (name) => [`http://here/${name}`],
      isOwn: () => false,
      context: () => coreContext,
      models: modelsIn(folder),
      clock,
      metrics,
      log: createLog({ level: 'info', clock, write: (line) => logged.push(JSON.parse(line)) }),
    },
    {
      allowsLoopback: true,
      folder: join(folder, 'plugins'),
      bridges: {},
      gatewayName: () => 'selvedge-test',
    },
    plugins.map((plugin) => ({
      name: plugin.name,
      load: () => load(plugin),
      settings,
    })),
  )
}

/** A request without a socket. */
export const environment = (body = ''): RouteEnvironment => ({
  body: async () => Buffer.from(body),
  signal: new AbortController().signal,
})
