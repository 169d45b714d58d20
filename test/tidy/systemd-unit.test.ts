/** The systemd unit stops and restarts the gateway as its commands and limits require. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { exitCodes } from '#cli/terminal/terminal.ts'

const unit = readFileSync(join(import.meta.dirname, '../../deploy/systemd/selvedge.service'), 'utf8')
const installGuide = readFileSync(join(import.meta.dirname, '../../docs/guides/install.md'), 'utf8')
const optionOf = (key: string): string | undefined => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]

it('waits for an orderly stop, whose SIGTERM goes to the main process only', () => {
  expect(optionOf('KillMode')).toBe('mixed')
  const seconds = Number(/^(\d+)s$/.exec(optionOf('TimeoutStopSec') ?? '')?.[1])
  expect(seconds * 1000).toBeGreaterThan(limits.closeMs.value + limits.drainMs.value)
})

it('restarts after a failure, but not with wrong settings', () => {
  expect(optionOf('Restart')).toBe('on-failure')
  expect(optionOf('RestartPreventExitStatus')).toBe(String(exitCodes.settings))
})

it('limits memory as the install guide says, and begins to reclaim below that', () => {
  const megabytes = (key: string): number => Number(/^(\d+)M$/.exec(optionOf(key) ?? '')?.[1])
  expect([megabytes('MemoryHigh'), megabytes('MemoryMax')]).toEqual([440, 520])
  expect(installGuide).toContain(`Its memory limit is ${megabytes('MemoryMax')} MB.`)
})

it('keeps data and settings private', () => {
  expect([optionOf('UMask'), optionOf('StateDirectoryMode'), optionOf('CacheDirectoryMode')]).toEqual([
    '0077',
    '0700',
    '0700',
  ])
})

it('gives the process nothing but its folders and sockets', () => {
  const hardening = unit.slice(unit.indexOf('NoNewPrivileges='), unit.indexOf('[Install]')).trim()
  expect(hardening.split('\n').map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1))).toEqual([
    ['NoNewPrivileges', 'yes'],
    ['CapabilityBoundingSet', ''],
    ['AmbientCapabilities', ''],
    ['ProtectSystem', 'strict'],
    ['ProtectHome', 'yes'],
    ['ProtectProc', 'invisible'],
    ['ProtectClock', 'yes'],
    ['ProtectHostname', 'yes'],
    ['ProtectKernelLogs', 'yes'],
    ['ProtectKernelModules', 'yes'],
    ['ProtectKernelTunables', 'yes'],
    ['ProtectControlGroups', 'yes'],
    ['PrivateTmp', 'yes'],
    ['PrivateDevices', 'yes'],
    ['DevicePolicy', 'closed'],
    ['KeyringMode', 'private'],
    ['LockPersonality', 'yes'],
    ['RemoveIPC', 'yes'],
    ['RestrictNamespaces', 'yes'],
    ['RestrictRealtime', 'yes'],
    ['RestrictSUIDSGID', 'yes'],
    ['RestrictAddressFamilies', 'AF_UNIX AF_INET AF_INET6 AF_NETLINK'],
    ['SystemCallArchitectures', 'native'],
    ['SystemCallFilter', '@system-service'],
    ['SystemCallFilter', '~@privileged @resources'],
    ['SystemCallErrorNumber', 'EPERM'],
  ])
})
