/**
 * Plugins for the tests of a file: each test has a broker of its own in a folder of its own, and what plugins it opens over it is
 * closed when it ends. Lowered ceilings are as they were again by then.
 */
import { afterEach, beforeEach } from 'vitest'
import type { Plugins } from '#host/plugins.ts'
import { type OpenBroker, openBroker, temporaryFolder } from './broker.ts'
import { restoreLimits } from './ceilings.ts'
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
  let temporary: ReturnType<typeof temporaryFolder>
  let open: OpenBroker
  let host: Plugins | undefined
  beforeEach(async () => {
    temporary = temporaryFolder()
    open = await openBroker(temporary.folder)
  })
  afterEach(async () => {
    restoreLimits()
    await host?.close()
    host = undefined
    await open.close()
    temporary.remove()
  })
  const opened = (...given: Opened): Plugins => {
    host = openPlugins(open, temporary.folder, ...given)
    return host
  }
  return {
    get open() {
      return open
    },
    get folder() {
      return temporary.folder
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
