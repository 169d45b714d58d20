/**
 * What is done when the disk, or the quota, fills. In this order: backups but the newest verified one go, then snapshots
 * one by one, then the log and the oldest history, which leave gap records; when nothing helps, writes are refused, and
 * what deletes goes on by the reserve. All of it ends by itself when there is room again, and the reserve is made anew.
 * Nothing here waits for the disk, and nothing that the disk says ends the process.
 */

import { limits } from '#base/limits/limits.ts'
import type { Log } from '#base/register/log.ts'
import type { Metrics } from '#base/register/metrics.ts'
import type { Clock } from '#base/time/clock.ts'
import { walFrameBytes } from '#store/file/copy-back.ts'
import { type Reserve, roomOf } from '#store/file/reserve.ts'

export interface DiskRoomPorts {
  readonly reserve: Reserve
  /** Removes backups on the same disk that are not needed most. Returns how many went. */
  readonly shedBackups: () => number
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
}

/** Of one database. */
export interface Extent {
  /** Bytes inside that can be filled again. */
  readonly freeBytes: number
  /** Bytes that the file has still to grow by, when its write-ahead log is copied back. */
  readonly owedBytes: number
  /** Bytes that this log has on the disk. */
  readonly walBytes: number
}

/** What of the gateway takes room, once it stands. */
export interface Holders {
  readonly extents: () => readonly Extent[]
  /** Lets go of one snapshot. False when there is none. */
  readonly shedSnapshot: () => Promise<boolean>
}

export interface DiskRoomSettings {
  readonly dataFolder: string
  readonly quotaBytes?: number | undefined
}

type DiskState = 'ample' | 'tight' | 'full'

export interface DiskRoom {
  /** Whether what makes the data grow may be written. */
  hasRoom(): boolean
  /** Whether things are given up. */
  isShort(): boolean
  /** Bytes that one who holds so many should let go of; 0 when there is room. */
  shortBytes(ownBytes: number): number
  /** Bytes that a write-ahead log may have before it is copied back; 0: at once, and it is cut off. */
  walBytesMax(): number
  /** A write failed for want of room. */
  refused(): void
  /** What an operator should know, in words. */
  complaints(): readonly string[]
  watch(holders: Holders | undefined): void
  close(): Promise<void>
}

/** Where there is room. */
export const walBytesMax = limits.walPagesMax.value * walFrameBytes

export function createDiskRoom(
  { reserve, shedBackups, clock, log, metrics }: DiskRoomPorts,
  { dataFolder, quotaBytes }: DiskRoomSettings,
): DiskRoom {
  /** Below, things are given up; from twice as much on there is room. */
  const low = Math.min(Math.max(reserve.bytes, limits.diskLowBytes.value), (quotaBytes ?? 2 ** 50) / 16)
  let holders: Holders | undefined
  let state: DiskState = 'ample'
  let room = Number.POSITIVE_INFINITY
  let usedBytes = 0
  /** What a log may have while there is room: the less is left, the sooner it is copied back. */
  let walBytes = walBytesMax
  /** Bytes of history that should go. */
  let lack = 0
  const toldAt = new Map<DiskState, number>()
  let isRefused = false
  let timer: NodeJS.Timeout | undefined
  let acting = Promise.resolve()
  let isActing = false
  let actAt = Number.NEGATIVE_INFINITY
  metrics.gauge('selvedge_disk_room_bytes', () => (Number.isFinite(room) ? room : 0))

  /** What may be filled; the reserve that was given up is not for that. */
  function measure(): { room: number; free: number } {
    const { freeBytes, ...used } = roomOf(dataFolder)
    usedBytes = used.usedBytes
    const extents = holders?.extents() ?? []
    const inside = extents.reduce((sum, extent) => sum + extent.freeBytes, 0)
    const owed = extents.reduce((sum, extent) => sum + extent.owedBytes, 0)
    walBytes = Math.min(
      walBytesMax,
      Math.max(freeBytes / limits.walRoomShare.value, limits.groupBytesMax.value),
    )
    // Logs of tenants that nobody writes to do not grow; the one that will grow most is room enough for the others.
    const walGrowth = walBytes - Math.min(walBytes, ...extents.map((extent) => extent.walBytes))
    const onDisk = freeBytes - owed - walGrowth
    const inQuota = quotaBytes === undefined ? Number.POSITIVE_INFINITY : quotaBytes - usedBytes - owed
    const spared = reserve.isHeld() ? 0 : reserve.bytes
    const whole = Math.min(onDisk - spared, inQuota) + inside
    // Free pages are of no use to a log that cannot be written, and history that goes makes nothing but free pages.
    const isStuck = onDisk < 0
    lack = Math.max(0, low * 2 - (isStuck ? inside : whole))
    return { room: isStuck ? onDisk : whole, free: freeBytes }
  }

  function next(): DiskState {
    // What SQLite refused is not over before there is room to speak of.
    if (room <= low / 4 || ((isRefused || state === 'full') && room < low / 2)) return 'full'
    isRefused = false
    if (room < low) return 'tight'
    return state === 'ample' || room > low * 2 ? 'ample' : 'tight'
  }

  function turn(to: DiskState): void {
    if (to === state) return
    const from = state
    state = to
    // Under a steady load it goes to and fro.
    if (clock.monotonic() - (toldAt.get(to) ?? Number.NEGATIVE_INFINITY) < limits.diskLogMs.value) return
    toldAt.set(to, clock.monotonic())
    const facts = { room, low, ...(quotaBytes !== undefined && { quotaBytes }) }
    if (to === 'ample') log.info('disk.room', facts)
    else if (to === 'tight') log.warn('disk.tight', { ...facts, from })
    else log.error('disk.full', facts)
  }

  /** A disk that is full already needs the room at once, or nothing can be opened. */
  function look(): void {
    const measured = measure()
    room = measured.room
    turn(next())
    if (state === 'full') giveReserve()
    // One at a time, and looking goes on meanwhile.
    if (isActing || clock.monotonic() < actAt) return
    isActing = true
    actAt = clock.monotonic() + limits.diskEvictMs.value
    acting = act(measured.free)
      .catch((error: unknown) => log.error('gateway.fault', { during: 'disk', error }))
      .finally(() => {
        isActing = false
      })
  }

  async function act(freeBytes: number): Promise<void> {
    if (state === 'ample') {
      if (!reserve.isHeld() && freeBytes > reserve.bytes + low && (await reserve.make()))
        log.info('disk.reserve-made', { bytes: reserve.bytes })
      return
    }
    const backups = shedBackups()
    if (backups > 0) log.warn('disk.shed', { backups })
    else if ((await holders?.shedSnapshot()) === true) log.warn('disk.shed', { snapshots: 1 })
  }

  function giveReserve(): void {
    if (reserve.release()) log.warn('disk.reserve-released', { bytes: reserve.bytes })
  }

  /** Before the room that there was can have been filled. */
  function wait(): void {
    const ms = Math.max(room / limits.diskFillBytesPerMs.value, limits.diskCheckMsMin.value)
    timer = setTimeout(
      () => {
        try {
          look()
        } catch (error) {
          // A disk that cannot be read now.
          log.error('gateway.fault', { during: 'disk', error })
        }
        wait()
      },
      Math.min(ms, limits.diskCheckMs.value),
    ).unref()
  }

  look()
  wait()

  return Object.freeze({
    hasRoom: () => state !== 'full',
    isShort: () => state !== 'ample',
    shortBytes(ownBytes) {
      if (state === 'ample') return 0
      const share = ownBytes / Math.max(ownBytes, usedBytes, 1)
      return Math.ceil(lack * share)
    },
    walBytesMax: () => (state === 'ample' ? walBytes : 0),
    refused() {
      if (isRefused) return
      isRefused = true
      room = Math.min(room, 0)
      turn('full')
      giveReserve()
    },
    complaints: () => (state === 'tight' ? ['room on the disk gets short; history is given up'] : []),
    watch(given) {
      holders = given
    },
    async close() {
      clearTimeout(timer)
      await acting
    },
  } satisfies DiskRoom)
}
