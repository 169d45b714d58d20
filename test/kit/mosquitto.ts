/** A real Mosquitto and its command line clients. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createPeerServer, type PeerServer } from './peer-server.ts'
import { findPeer } from './peer-table.ts'

/** Made, not started. Everything is persistent at once; `lines` go into its configuration. */
export const createMosquitto = (path: string, lines: readonly string[] = []): Promise<PeerServer> =>
  createPeerServer(path, (folder, port) => {
    const config = join(folder, 'mosquitto.conf')
    const own = [
      `listener ${port} 127.0.0.1`,
      'allow_anonymous true',
      'persistence true',
      `persistence_location ${folder}/`,
      'autosave_on_changes true',
      'autosave_interval 1',
      ...(process.getuid?.() === 0 ? ['user root'] : []),
    ]
    writeFileSync(config, `${[...own, ...lines].join('\n')}\n`)
    return ['-c', config]
  })

/** Runs one of Mosquitto's clients to its end and returns its standard output; `input` is its standard input. */
export async function run(
  name: 'mosquitto_pub' | 'mosquitto_sub',
  args: readonly string[],
  input = '',
): Promise<string> {
  const running = promisify(execFile)(findPeer(name)!, args, { timeout: 60_000 })
  // A client that reads no input may end before it is written.
  running.child.stdin?.on('error', () => undefined).end(input)
  return (await running).stdout
}
