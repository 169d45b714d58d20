/**
 * Plugins for the tests of a file: each test has a broker of its own in a folder of its own, and what plugins it opens over it is
 * closed when it ends.
 */
import { afterEach } from 'vitest'
import type { Plugins } from '#host/plugins.ts'
import type { OpenBroker } from './broker.ts'
import { brokerOfFile } from './broker-of-file.ts'
import { environment, openPlugins } from './plugins.ts'

/** What plugins, and how. */
type Opened = Parameters<typeof openPlugins> extends [unknown, unknown, ...infer Rest] ? Rest : never

export interface PluginsOfFile {
  /** The broker of the test that runs. */
  readonly open: OpenBroker
  readonly folder: string
  /** What was opened last. */
  readonly host: Plugins
  /** Opens plugins, to be started. */
  openPlugins(...given: Opened): Plugins
  /** Opens plugins and starts them. */
  start(...given: Opened): Promise<void>
  /** A request without a socket to one of them, of what was opened last. */
  ask(name: string, request?: Request, body?: string): ReturnType<Plugins['fetch']>
}

export function pluginsOfFile(): PluginsOfFile {
  const open = brokerOfFile()
  let host: Plugins | undefined
  afterEach(async () => {
    await host?.close()
    host = undefined
  })
  const opened = (...given: Opened): Plugins => {
    host = openPlugins(open, open.folder, ...given)
    return host
  }
  return {
    open,
    get folder() {
      return open.folder
    },
    get host() {
      return host!
    },
    openPlugins: opened,
    start: (...given) => opened(...given).start(),
    ask: (name, request = new Request('http://x/'), body = '') =>
      host!.fetch(name, request, environment(body)),
  }
}
