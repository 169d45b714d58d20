/**
 * A machine whose power can be cut: qemu with a disk whose every write goes through blklogwrites. Cutting is SIGKILL; the disk
 * it boots from next is made anew from the log, so what the host still had in its cache counts for nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/kit/ports.ts'
import { type Restored, type RestoreOptions, restoreDisk } from './write-log.ts'

export interface Life {
  readonly httpUrl: string
  readonly mqttPort: number
  readonly bootMs: number
  /** What the guest said on its console. */
  console(): string
  /** No more power. Returns what is left on the disk. */
  cut(options?: RestoreOptions): Promise<Restored>
}

export interface Machine {
  /** Boots and settles when the gateway is ready and its databases were looked at. */
  boot(): Promise<Life>
  /** Kills what runs. */
  off(): void
}

/** Emulation needs no help of the processor and is some ten times slower. */
export type Acceleration = 'kvm' | 'tcg'

const bootWithinMs = 300_000

/** `cache` has what guest.sh built; `folder` takes the disks. */
export function createMachine(cache: string, folder: string, accel: Acceleration): Machine {
  const [base, disk, log] = ['base.img', 'disk.img', 'writes.log'].map((name) => join(folder, name))
  copyFileSync(join(cache, 'empty.img'), base!)
  let running: ChildProcess | undefined
  const off = (): void => void running?.kill('SIGKILL')
  process.once('exit', off)

  async function boot(): Promise<Life> {
    copyFileSync(base!, disk!)
    rmSync(log!, { force: true })
    writeFileSync(log!, '')
    const [http, mqtt] = [await freePort(), await freePort()]
    const began = performance.now()
    const child = spawn(
      'qemu-system-x86_64',
      qemuArguments({ accel, cache, disk: disk!, log: log!, http, mqtt }),
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    running = child
    let output = ''
    const gone = new Promise<void>((resolve) => child.once('close', () => resolve()))
    const said = new Promise<boolean>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text
          if (output.includes('power-cut: ready')) resolve(true)
        })
      void gone.then(() => resolve(false))
      setTimeout(() => resolve(false), bootWithinMs).unref()
    })
    if (!(await said)) {
      child.kill('SIGKILL')
      const hint = accel === 'kvm' ? '; where KVM does not carry it, --accel tcg does' : ''
      throw new TypeError(`the guest did not become ready${hint}:\n${output}`)
    }
    return Object.freeze({
      httpUrl: `http://127.0.0.1:${http}`,
      mqttPort: mqtt,
      bootMs: performance.now() - began,
      console: () => output,
      async cut(options) {
        child.kill('SIGKILL')
        await gone
        return restoreDisk(log!, base!, options)
      },
    } satisfies Life)
  }
  return Object.freeze({ boot, off })
}

function qemuArguments(places: {
  accel: Acceleration
  cache: string
  disk: string
  log: string
  http: number
  mqtt: number
}): string[] {
  const { accel, cache, disk, log, http, mqtt } = places
  const forward = (host: number, guest: number): string => `hostfwd=tcp:127.0.0.1:${host}-:${guest}`
  return [
    ...['-accel', accel, '-cpu', accel === 'kvm' ? 'host' : 'max', '-nodefaults', '-display', 'none'],
    ...['-m', '768', '-smp', '1', '-no-reboot', '-serial', 'stdio', '-monitor', 'none'],
    ...['-kernel', join(cache, 'vmlinuz'), '-initrd', join(cache, 'initrd')],
    ...['-append', 'root=LABEL=root rw console=ttyS0 quiet mitigations=off no_timer_check panic=-1'],
    ...['-drive', `file=${join(cache, 'root.img')},format=raw,if=virtio,snapshot=on`],
    ...['-blockdev', `driver=file,node-name=disk,filename=${disk}`],
    ...['-blockdev', `driver=file,node-name=log,filename=${log}`],
    // The head of the log is written with every entry, so that nothing of it is missed after SIGKILL.
    ...['-blockdev', 'driver=blklogwrites,node-name=data,file=disk,log=log,log-super-update-interval=1'],
    ...['-device', 'virtio-blk-pci,drive=data,write-cache=on'],
    ...['-netdev', `user,id=net,${forward(http, 19_090)},${forward(mqtt, 11_883)}`],
    ...['-device', 'virtio-net-pci,netdev=net'],
  ]
}
