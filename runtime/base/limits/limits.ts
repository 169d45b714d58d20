/**
 * Every ceiling of the gateway in one table: value and unit, and in its comment the reason and what happens
 * beyond it. Every queue, cache, buffer, retry and loop has an entry here.
 */

import { clockLimits } from './clock-limits.ts'
import { deliveryLimits } from './delivery-limits.ts'
import { diskLimits } from './disk-limits.ts'
import { downwardLimits } from './downward-limits.ts'
import { httpLimits } from './http-limits.ts'
import { intakeLimits } from './intake-limits.ts'
import { type Limit, limit, underTrial } from './limit.ts'
import { modelLimits } from './model-limits.ts'
import { mqttLimits } from './mqtt-limits.ts'
import { ngsiLdLimits } from './ngsi-ld-limits.ts'
import { pluginLimits } from './plugins/plugin-limits.ts'
import { sourceLimits } from './source-limits.ts'
import { uplinkLimits } from './uplink-limits.ts'

export const limits = underTrial({
  // The door (commit path)
  /** Throughput per flush hardly rises with larger groups. Beyond it: next group. */
  groupObservationsMax: limit(1024, 'observations'),
  /** Bounds the time spent deciding one group. Beyond it: next group. */
  groupEntityWorksMax: limit(256, 'works'),
  /** Other requests wait while a group is decided. Beyond it: next group. */
  groupDecideMs: limit(20, 'ms'),
  /** Bounds memory and deciding time of a group. Beyond it: next group. */
  groupBytesMax: limit(1024 * 1024, 'bytes'),
  /** Larger groups gain little per flush. Beyond it: the linger ends. */
  lingerObservationsMax: limit(256, 'observations'),
  /** Devices time out beyond it. Beyond it: settings are rejected. */
  lingerMsMax: limit(2000, 'ms'),
  /** About 20 MB of queued frames. Beyond it: QoS 0 dropped, QoS 1 waits, HTTP 503. */
  queueWorksMax: limit(20_000, 'works'),
  /**
   * Bounds a commit whose works write many rows, such as the first frames of devices. Beyond it: next group.
   */
  groupRowsMax: limit(4096, 'rows'),
  /**
   * Slices of all batches in the queue: one is decided while another is flushed. Beyond it: waits for a free
   * slot.
   */
  batchSlicesMax: limit(2, 'slices'),
  /**
   * Items of a batch share one commit time; followers re-read this far back if the log cannot be searched.
   * Beyond it: later items get a new commit time.
   */
  batchOneTimeMs: limit(4000, 'ms'),
  /**
   * Rows of the log that are searched in one turn for the earliest time behind a position. Beyond it: as if
   * the log did not reach back.
   */
  batchSearchRowsMax: limit(1000, 'rows'),
  /** Memory of a small board. Beyond it: QoS 0 dropped, QoS 1 waits, HTTP 503. */
  queueBytesMax: limit(32 * 1024 * 1024, 'bytes'),
  /** Keeps event-loop delay low after large commits. Beyond it: the next turn. */
  answersPerTurn: limit(16, 'answers'),
  /** A larger WAL saves writes; 8 MB of disk. Beyond it: PASSIVE checkpoint. */
  walPagesMax: limit(2000, 'pages'),
  /**
   * Cached entity documents of all tenants; the heap is 256 MB. Beyond it: the tenant with the largest cache
   * evicts documents that are neither read nor often found by searches.
   */
  documentsCachedBytes: limit(16 * 1024 * 1024, 'bytes'),
  /** Those cached while more than `memoryThriftBytes` is resident. Beyond it: evicted in the same way. */
  documentsCachedShortBytes: limit(8 * 1024 * 1024, 'bytes'),
  /** Short documents that a search reads at once, 2 MB at most. Beyond it: the next ones. */
  shortRowsRead: limit(128, 'documents'),
  /** Length of a short document. Beyond it: read one by one. */
  shortRowBytes: limit(16 * 1024, 'bytes'),
  /**
   * Entities whose search frequency is counted, one byte each, for all tenants. Beyond it: entities share
   * counters.
   */
  rowFrequenciesMax: limit(131_072, 'entities'),
  /**
   * Entities on recently listed pages, per tenant; 128 kB with overhead. Beyond it: the oldest page is
   * evicted.
   */
  knownPagesRidsMax: limit(16_384, 'entities'),
  /**
   * Index columns cached for searches, per tenant; an attribute of 100,000 entities takes 1.6 MB. Beyond it:
   * the column unused for longest is evicted; the next 10,000 searches read the tables instead.
   */
  knownColumnsBytes: limit(8 * 1024 * 1024, 'bytes'),
  /**
   * Rows that one search adds to an incomplete cached column; half a millisecond. Beyond it: the next search.
   */
  columnRowsPerSearch: limit(2048, 'rows'),
  /** Documents that a reader of all entities holds at a time. Beyond it: the next page. */
  scannedPageBytes: limit(256 * 1024, 'characters'),
  // Log, tail, chunks
  /** Followers resume from the log. Beyond it: oldest folded rows are deleted. */
  logBytesMax: limit(64 * 1024 * 1024, 'bytes'),
  /** Bounds the log by age. Beyond it: oldest folded rows are deleted. */
  logAgeMsMax: limit(6 * 3_600_000, 'ms'),
  /** Unfolded history in memory. Beyond it: large tails are folded early. */
  tailBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** zstd pays off from 512; reads decode whole chunks. Beyond it: next chunk. */
  chunkObservations: limit(1024, 'observations'),
  /** Bounds chunks of texts and objects, by their size in memory. Beyond it: next chunk. */
  chunkBytesMax: limit(256 * 1024, 'bytes'),
  /** Smaller last chunks are merged with later observations. Beyond it: kept unchanged. */
  chunkPartialMin: limit(512, 'observations'),
  /** Bounds the replay after a crash. Beyond it: the stream is folded at any size. */
  tailAgeMs: limit(30 * 60_000, 'ms'),
  /** Entity changes in memory. Beyond it: oldest are folded early. */
  entityRecordsUnfoldedMax: limit(65_536, 'records'),
  /** Requests in the same group wait for the folding, also of entity records. Beyond it: the next group. */
  foldedPerGroup: limit(1024, 'observations'),
  /** Each changed document is written once per interval. Beyond it: written at the next tick. */
  writebackMs: limit(60_000, 'ms'),
  /** Bounds one commit. Beyond it: the next group. */
  writebacksPerGroup: limit(256, 'documents'),
  /** Bounds deciding time and one commit. Beyond it: the next group. */
  expiriesPerGroup: limit(64, 'entities'),
  /** Bounds deciding time and one commit. Beyond it: the next group. */
  evictionPartsPerGroup: limit(32, 'parts'),
  /** Searching the oldest history would stall the event loop. Beyond it: the next group. */
  evictionSearchesPerGroup: limit(64, 'series'),
  /**
   * Series with the oldest history, held in memory and sorted at once. Beyond it: found by another search.
   */
  evictionCandidatesMax: limit(5000, 'series'),
  /**
   * Records of evicted history; about 6 MB on disk. Beyond it: the records unchanged for longest are merged
   * into one sum.
   */
  gapsMax: limit(100_000, 'records'),
  /** About 60 MB of live stream state. Beyond it: idle streams leave memory. */
  streamsLiveMax: limit(50_000, 'streams'),
  /** Stream numbers must fit 22 bits of the chunk key. Beyond it: store.failed. */
  streamsMax: limit(4_000_000, 'streams'),
  /** Resident memory, also under load. Beyond it: garbage is collected. */
  memoryPressureBytes: limit(176 * 1024 * 1024, 'bytes'),
  /** Growth of resident memory in a burst of work above that. Beyond it: collected after the burst. */
  pressureGrowthBytes: limit(16 * 1024 * 1024, 'bytes'),
  /**
   * Resident memory. Beyond it: V8 collects earlier and returns free pages of its heap at once, at the cost
   * of time.
   */
  memoryThriftBytes: limit(200 * 1024 * 1024, 'bytes'),
  /** Long work in one turn of the event loop before other long work waits. Beyond it: the next turn. */
  usedTurnMs: limit(4, 'ms'),
  /** Long work waits while V8 marks with more than `memoryPressureBytes` resident. Beyond it: continues. */
  markingWaitMs: limit(100, 'ms'),
  /** Young generation of the heap while more is resident. Beyond it: it no longer grows. */
  youngPressureBytes: limit(8 * 1024 * 1024, 'bytes'),
  /** Memory above the baseline that an idle process keeps after a load. Beyond it: garbage is collected. */
  memoryExcessBytes: limit(8 * 1024 * 1024, 'bytes'),
  ...ngsiLdLimits,
  ...intakeLimits,
  ...deliveryLimits,
  // Demo
  /** Unacknowledged messages of the simulated site. Beyond it: waits. */
  demoInFlightMax: limit(256, 'messages'),
  /** A recorded series is read as a whole. Beyond it: the file is rejected. */
  demoFileBytesMax: limit(256 * 1024 * 1024, 'bytes'),
  // Process
  /** About 20,000 declared devices. Beyond it: settings are rejected. */
  settingsBytesMax: limit(4 * 1024 * 1024, 'bytes'),
  /** Recursion must fit the stack. Beyond it: settings are rejected. */
  settingsDepthMax: limit(64, 'levels'),
  /**
   * Each of the four parts that drain one after the other. Beyond it: open connections are closed; their
   * pending data is on disk.
   */
  drainMs: limit(2000, 'ms'),
  /** systemd kills after ten seconds. Beyond it: open work is abandoned; it is on disk. */
  closeMs: limit(8000, 'ms'),

  ...httpLimits,
  ...sourceLimits,
  ...clockLimits,
  ...diskLimits,
  ...uplinkLimits,
  ...downwardLimits,
  ...mqttLimits,
  ...modelLimits,
  ...pluginLimits,
} as const satisfies Record<string, Limit>)
