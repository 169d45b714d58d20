/**
 * Every ceiling of the gateway in one table: value, unit, reason, and what happens when it is exceeded.
 * Every queue, cache, buffer, retry and loop has an entry here.
 */

import { clockLimits } from './clock-limits.ts'
import { deliveryLimits } from './delivery-limits.ts'
import { diskLimits } from './disk-limits.ts'
import { downwardLimits } from './downward-limits.ts'
import { httpLimits } from './http-limits.ts'
import { intakeLimits } from './intake-limits.ts'
import { type Limit, limit, underTrial } from './limit.ts'
import { mqttLimits } from './mqtt-limits.ts'
import { ngsiLdLimits } from './ngsi-ld-limits.ts'
import { pluginLimits } from './plugin-limits.ts'
import { sourceLimits } from './source-limits.ts'
import { uplinkLimits } from './uplink-limits.ts'

export const limits = underTrial({
  // The door (commit path)
  groupObservationsMax: limit(
    1024,
    'observations',
    'Throughput per flush hardly rises with larger groups',
    'next group',
  ),
  groupEntityWorksMax: limit(256, 'works', 'Bounds the time spent deciding one group', 'next group'),
  groupDecideMs: limit(20, 'ms', 'Other requests wait while a group is decided', 'next group'),
  groupBytesMax: limit(1024 * 1024, 'bytes', 'Bounds memory and deciding time of a group', 'next group'),
  lingerObservationsMax: limit(256, 'observations', 'Larger groups gain little per flush', 'the linger ends'),
  lingerMsMax: limit(2000, 'ms', 'Devices time out beyond it', 'settings are rejected'),
  queueWorksMax: limit(
    20_000,
    'works',
    'About 20 MB of queued frames',
    'QoS 0 dropped, QoS 1 waits, HTTP 503',
  ),
  groupRowsMax: limit(
    4096,
    'rows',
    'Bounds a commit whose works write many rows, such as the first frames of devices',
    'next group',
  ),
  batchSlicesMax: limit(
    2,
    'slices',
    'Slices of all batches in the queue: one is decided while another is flushed',
    'waits for a free slot',
  ),
  batchOneTimeMs: limit(
    4000,
    'ms',
    'Items of a batch share one commit time; followers of the log re-read this far back',
    'later items get a new commit time',
  ),
  queueBytesMax: limit(
    32 * 1024 * 1024,
    'bytes',
    'Memory of a small board',
    'QoS 0 dropped, QoS 1 waits, HTTP 503',
  ),
  answersPerTurn: limit(16, 'answers', 'Keeps event-loop delay low after large commits', 'the next turn'),
  walPagesMax: limit(2000, 'pages', 'A larger WAL saves writes; 8 MB of disk', 'PASSIVE checkpoint'),
  documentsCachedBytes: limit(
    16 * 1024 * 1024,
    'bytes',
    'Cached entity documents of all tenants; the heap is 256 MB',
    'the tenant with the largest cache evicts documents that are neither read nor often found by searches',
  ),
  rowFrequenciesMax: limit(
    131_072,
    'entities',
    'Entities whose search frequency is counted, one byte each, for all tenants',
    'entities share counters',
  ),
  knownPagesRidsMax: limit(
    16_384,
    'entities',
    'Entities on recently listed pages, per tenant; 128 kB with overhead',
    'the oldest page is evicted',
  ),
  knownColumnsBytes: limit(
    8 * 1024 * 1024,
    'bytes',
    'Index columns cached for searches, per tenant; an attribute of 100,000 entities takes 1.6 MB',
    'the column unused for longest is evicted; the next 10,000 searches read the tables instead',
  ),
  columnRowsPerSearch: limit(
    2048,
    'rows',
    'Rows that one search adds to an incomplete cached column; half a millisecond',
    'the next search',
  ),
  // Log, tail, chunks
  logBytesMax: limit(
    64 * 1024 * 1024,
    'bytes',
    'Followers resume from the log',
    'oldest folded rows are deleted',
  ),
  logAgeMsMax: limit(6 * 3_600_000, 'ms', 'Bounds the log by age', 'oldest folded rows are deleted'),
  tailBytesMax: limit(
    16 * 1024 * 1024,
    'bytes',
    'Unfolded history in memory',
    'large tails are folded early',
  ),
  chunkObservations: limit(
    1024,
    'observations',
    'zstd pays off from 512; reads decode whole chunks',
    'next chunk',
  ),
  chunkBytesMax: limit(
    256 * 1024,
    'bytes',
    'Bounds chunks of texts and objects, by their size in memory',
    'next chunk',
  ),
  chunkPartialMin: limit(
    512,
    'observations',
    'Smaller last chunks are merged with later observations',
    'kept unchanged',
  ),
  tailAgeMs: limit(30 * 60_000, 'ms', 'Bounds the replay after a crash', 'the stream is folded at any size'),
  entityRecordsUnfoldedMax: limit(65_536, 'records', 'Entity changes in memory', 'oldest are folded early'),
  foldedPerGroup: limit(
    1024,
    'observations',
    'Requests in the same group wait for the folding',
    'the next group',
  ),
  writebackMs: limit(
    60_000,
    'ms',
    'Each changed document is written once per interval',
    'written at the next tick',
  ),
  writebacksPerGroup: limit(256, 'documents', 'Bounds one commit', 'the next group'),
  expiriesPerGroup: limit(64, 'entities', 'Bounds deciding time and one commit', 'the next group'),
  evictionPartsPerGroup: limit(32, 'parts', 'Bounds deciding time and one commit', 'the next group'),
  evictionSearchesPerGroup: limit(
    64,
    'series',
    'Searching the oldest history would stall the event loop',
    'the next group',
  ),
  evictionCandidatesMax: limit(
    5000,
    'series',
    'Series with the oldest history, held in memory and sorted at once',
    'found by another search',
  ),
  gapsMax: limit(
    100_000,
    'records',
    'Records of evicted history; about 6 MB on disk',
    'the records unchanged for longest are merged into one sum',
  ),
  streamsLiveMax: limit(50_000, 'streams', 'About 60 MB of live stream state', 'idle streams leave memory'),
  streamsMax: limit(4_000_000, 'streams', 'Stream numbers must fit 22 bits of the chunk key', 'store.failed'),
  memoryPressureBytes: limit(
    176 * 1024 * 1024,
    'bytes',
    'Resident memory, also under load',
    'garbage is collected',
  ),
  memoryExcessBytes: limit(
    8 * 1024 * 1024,
    'bytes',
    'Memory above the baseline that an idle process keeps after a load',
    'garbage is collected',
  ),
  ...ngsiLdLimits,
  ...intakeLimits,
  ...deliveryLimits,
  // Demo
  demoInFlightMax: limit(256, 'messages', 'Unacknowledged messages of the simulated site', 'waits'),
  demoFileBytesMax: limit(
    256 * 1024 * 1024,
    'bytes',
    'A recorded series is read as a whole',
    'the file is rejected',
  ),
  // Process
  settingsBytesMax: limit(4 * 1024 * 1024, 'bytes', 'About 20,000 declared devices', 'settings are rejected'),
  settingsDepthMax: limit(64, 'levels', 'Recursion must fit the stack', 'settings are rejected'),
  drainMs: limit(
    2000,
    'ms',
    'Each of the four parts that drain one after the other',
    'open connections are closed; their pending data is on disk',
  ),
  closeMs: limit(8000, 'ms', 'systemd kills after ten seconds', 'open work is abandoned; it is on disk'),

  ...httpLimits,
  ...sourceLimits,
  ...clockLimits,
  ...diskLimits,
  ...uplinkLimits,
  ...downwardLimits,
  ...mqttLimits,
  ...pluginLimits,
} as const satisfies Record<string, Limit>)
