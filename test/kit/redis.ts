/** A real Redis that keeps nothing over restarts. */
import { createPeerServer, type PeerServer } from './peer-server.ts'

/** Made, not started. @param more options, such as `--requirepass x`. */
export const createRedis = (path: string, more: readonly string[] = []): Promise<PeerServer> =>
  createPeerServer(path, (folder, port) => {
    const listener = ['--bind', '127.0.0.1', '--port', String(port)]
    return [...listener, '--dir', folder, '--save', '', '--appendonly', 'no', ...more]
  })
