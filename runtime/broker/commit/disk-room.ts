/**
 * Frees disk space when the disk or the quota is nearly full, in this order:
 *
 * 1. delete backups, except the newest verified one;
 * 2. delete snapshots, one at a time;
 * 3. trim the log and the oldest history, which leaves gap records;
 * 4. refuse writes; deletions still work, because the reserve file is released.
 *
 * All of it ends by itself when there is space again; then the reserve file is created again. Nothing here
 * blocks on the disk, and no disk error ends the process.
 */

import { limits } from '#base/limits/limits.ts'
import type { Instruments } from '#base/process/instruments.ts'
import { walFrameBytes } from '#store/file/copy-back.ts'
import { type Reserve, roomOf } from '#store/file/reserve.ts'

export interface DiskRoomPorts extends Instruments {
  readonly reserve: Reserve
  /** Deletes dispensable backups on the same disk. Returns how many were deleted. */
  readonly deleteBackups: () => number
}

/** Disk use of one database. */
export interface DiskUse {
  /** Bytes of free pages inside the file. */
  readonly freeBytes: number
  /** Bytes by which the file will grow when its write-ahead log is checkpointed. */
  readonly growthBytes: number
  /** Size of the write-ahead log. */
  readonly walBytes: number
}

/** The parts of the gateway that use disk space; known only after start. */
export interface Holders {
  readonly extents: () => readonly DiskUse[]
  /** Deletes one snapshot. False when there is none. */
  readonly deleteSnapshot: () => Promise<boolean>
}

export interface DiskRoomSettings {
  readonly dataFolder: string
  readonly quotaBytes?: number | undefined
}

type DiskState = 'ample' | 'tight' | 'full'

export interface DiskRoom {
  /** Whether writes that make the data grow are allowed. */
  hasRoom(): boolean
  /** Whether space is being freed. */
  isShort(): boolean
  /** Bytes that a holder of `ownBytes` should free; 0 when there is enough space. */
  shortBytes(ownBytes: number): number
  /** Size at which a write-ahead log is checkpointed; 0 means at once, and the log is truncated. */
  walBytesMax(): number
  /**
   * Bytes that a write leaves on the disk when its file grows, and twice as many together with the free pages
   * of the file. Upkeep and deletions need them to free space.
   */
  readonly keptBytes: number
  /** Reports that a write failed because the disk is full. */
  refused(): void
  /** Warnings for the operator. */
  complaints(): readonly string[]
  watch(holders: Holders | undefined): void
  close(): Promise<void>
}

/** The ceiling while there is enough space. */
export const walBytesMax = limits.walPagesMax.value * walFrameBytes

export function createDiskRoom(
  { reserve, deleteBackups, clock, log, metrics }: DiskRoomPorts,
  { dataFolder, quotaBytes }: DiskRoomSettings,
): DiskRoom {
  /** Below this many bytes, space is freed; above twice as many, there is enough. */
  const low = Math.min(Math.max(reserve.bytes, limits.diskLowBytes.value), (quotaBytes ?? 2 ** 50) / 16)
  let holders: Holders | undefined
  let state: DiskState = 'ample'
  let room = Number.POSITIVE_INFINITY
  let usedBytes = 0
  /** Ceiling of a write-ahead log while there is enough space: the less is left, the lower it is. */
  let walBytes = walBytesMax
  /** Bytes of history that should be deleted. */
  let shortfall = 0
  const loggedAt = new Map<DiskState, number>()
  let isRefused = false
  let timer: NodeJS.Timeout | undefined
  let acting = Promise.resolve()
  let isActing = false
  let nextActionAt = Number.NEGATIVE_INFINITY
  metrics.gauge('selvedge_disk_room_bytes', () => (Number.isFinite(room) ? room : 0))

  /** Measures the usable space. Space needed to create the reserve again does not count. */
  function measure(): { room: number; free: number } {
    const { freeBytes, ...used } = roomOf(dataFolder)
    usedBytes = used.usedBytes
    const extents = holders?.extents() ?? []
    const inside = extents.reduce((sum, extent) => sum + extent.freeBytes, 0)
    const growth = extents.reduce((sum, extent) => sum + extent.growthBytes, 0)
    walBytes = Math.min(
      walBytesMax,
      Math.max(freeBytes / limits.walRoomShare.value, limits.groupBytesMax.value),
    )
    // Logs of idle tenants do not grow; space for the log that will grow most is enough for all.
    const walCeiling = state === 'ample' ? walBytes : limits.shortGroupBytes.value
    const walGrowth = walCeiling - Math.min(walCeiling, ...extents.map((extent) => extent.walBytes))
    const onDisk = freeBytes - growth - walGrowth
    const inQuota = quotaBytes === undefined ? Number.POSITIVE_INFINITY : quotaBytes - usedBytes - growth
    const heldBack = reserve.isHeld() ? 0 : reserve.bytes
    const whole = Math.min(onDisk - heldBack, inQuota) + inside
    // A log that cannot be written does not profit from free pages, and deleting history only makes free
    // pages.
    const isStuck = onDisk < 0
    shortfall = Math.max(0, low * 2 - (isStuck ? inside : whole))
    return { room: isStuck ? onDisk : whole, free: freeBytes }
  }

  function next(): DiskState {
    // After SQLite reported a full disk, a few free bytes are not enough to accept writes again.
    if (room <= low / 4 || ((isRefused || state === 'full') && room < low / 2)) return 'full'
    isRefused = false
    if (room < low) return 'tight'
    return state === 'ample' || room > low * 2 ? 'ample' : 'tight'
  }

  function enterState(to: DiskState): void {
    if (to === state) return
    const from = state
    state = to
    // Under steady load the state alternates; each state is logged at most once per interval.
    if (clock.monotonic() - (loggedAt.get(to) ?? Number.NEGATIVE_INFINITY) < limits.diskLogMs.value) return
    loggedAt.set(to, clock.monotonic())
    const facts = { room, low, ...(quotaBytes !== undefined && { quotaBytes }) }
    if (to === 'ample') log.info('disk.room', facts)
    else if (to === 'tight') log.warn('disk.tight', { ...facts, from })
    else log.error('disk.full', facts)
  }

  /**
   * Checks the space. If the disk is already full, the reserve is released at once, or no file could be
   * opened.
   */
  function check(): void {
    const measured = measure()
    room = measured.room
    enterState(next())
    if (state === 'full') releaseReserve()
    // Actions run one at a time; checks continue meanwhile.
    if (isActing || clock.monotonic() < nextActionAt) return
    isActing = true
    nextActionAt = clock.monotonic() + limits.diskEvictMs.value
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
    const backups = deleteBackups()
    if (backups > 0) log.warn('disk.shed', { backups })
    else if ((await holders?.deleteSnapshot()) === true) log.warn('disk.shed', { snapshots: 1 })
  }

  function releaseReserve(): void {
    if (reserve.release()) log.warn('disk.reserve-released', { bytes: reserve.bytes })
  }

  /** Schedules the next check before the remaining space can have been filled. */
  function scheduleCheck(): void {
    const ms = Math.max(room / limits.diskFillBytesPerMs.value, limits.diskCheckMsMin.value)
    timer = setTimeout(
      () => {
        try {
          check()
        } catch (error) {
          // The disk cannot be read now.
          log.error('gateway.fault', { during: 'disk', error })
        }
        scheduleCheck()
      },
      Math.min(ms, limits.diskCheckMs.value),
    ).unref()
  }

  check()
  scheduleCheck()

  return Object.freeze({
    hasRoom: () => state !== 'full',
    isShort: () => state !== 'ample',
    shortBytes(ownBytes) {
      if (state === 'ample') return 0
      const share = ownBytes / Math.max(ownBytes, usedBytes, 1)
      return Math.ceil(shortfall * share)
    },
    keptBytes: limits.diskKeptBytes.value,
    walBytesMax: () => (state === 'ample' ? walBytes : 0),
    refused() {
      if (isRefused) return
      isRefused = true
      room = Math.min(room, 0)
      enterState('full')
      releaseReserve()
    },
    complaints: () =>
      state === 'tight' ? ['the disk is nearly full; the oldest history is being deleted'] : [],
    watch(started) {
      holders = started
    },
    async close() {
      clearTimeout(timer)
      await acting
    },
  } satisfies DiskRoom)
}
