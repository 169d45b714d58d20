/**
 * A broker for the tests of a file: each test has one of its own, in a folder of its own and with a clock of its own; the writer
 * thread is the same for all of them. Lowered ceilings are as they were again after each.
 */
import { afterAll, afterEach, beforeEach } from 'vitest'
import {
  type BrokerOptions,
  immortalWriter,
  type OpenBroker,
  openBroker,
  settableClock,
  temporaryFolder,
} from './broker.ts'
import { restoreLimits } from './ceilings.ts'

export interface Restart {
  /** Done while it is closed. */
  readonly meanwhile?: () => void
  /** Whether it begins with a writer thread that nobody shares, which ends with it. */
  readonly ownWriter?: boolean
}

/** The broker of the test that runs, as it is now. */
export interface BrokerOfFile extends OpenBroker {
  readonly folder: string
  /** Closes it, and opens the same folder again. */
  restart(how?: Restart): Promise<void>
}

export function brokerOfFile(settings: Omit<BrokerOptions, 'writer' | 'clock'> = {}): BrokerOfFile {
  const writer = immortalWriter()
  let temporary: ReturnType<typeof temporaryFolder>
  let clock: ReturnType<typeof settableClock>
  let open: OpenBroker
  async function start({ ownWriter = false }: Restart = {}): Promise<void> {
    open = await openBroker(temporary.folder, { ...settings, clock, ...(ownWriter ? {} : { writer }) })
  }
  async function restart(how: Restart = {}): Promise<void> {
    await open.close()
    how.meanwhile?.()
    await start(how)
  }
  beforeEach(async () => {
    temporary = temporaryFolder()
    clock = settableClock()
    await start()
  })
  afterEach(async () => {
    restoreLimits()
    await open.close()
    temporary.remove()
  })
  afterAll(() => writer.end())
  // Each test has another one behind it, so a member is looked for when it is asked for.
  return new Proxy({} as BrokerOfFile, {
    get: (_, name) => Reflect.get({ ...open, folder: temporary.folder, restart }, name),
  })
}
