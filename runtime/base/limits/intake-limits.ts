/**
 * Ceilings of intake: frames, readings, quarantine, choices of operators; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const intakeLimits = {
  /** One frame is decided as a whole. Beyond it: quarantined. */
  readingsPerFrameMax: limit(1024, 'readings'),
  /** Enough to correct a mapping. Beyond it: further ones are only counted. */
  problemsPerFrameMax: limit(16, 'problems'),
  /** Device and field names become keys. Beyond it: the reading is rejected. */
  deviceNameCharactersMax: limit(256, 'characters'),
  /** Bridge lookups cached by topic. Beyond it: oldest is evicted. */
  topicsRememberedMax: limit(20_000, 'topics'),
  /** Can be replayed after a mapping is corrected. Beyond it: oldest is dropped. */
  quarantineFramesMax: limit(1000, 'frames'),
  /** Bounds the quarantine by size. Beyond it: oldest is dropped. */
  quarantineBytesMax: limit(4 * 1024 * 1024, 'bytes'),
  /** Topics that no bridge reads, in memory. Beyond it: the topic silent for longest is removed. */
  unclaimedTopicsMax: limit(256, 'topics'),
  /** Held in memory until the topic is mapped. Beyond it: oldest is dropped. */
  unclaimedFramesPerTopicMax: limit(200, 'frames'),
  /** Held frames of all such topics. Beyond it: the topic that holds most drops its oldest. */
  unclaimedBytesMax: limit(4 * 1024 * 1024, 'bytes'),
  /** Log lines about new topics; then one per second. Beyond it: counted in the next line. */
  unclaimedLinesMax: limit(100, 'lines'),
  /** Bytes of a payload shown in the list of devices. Beyond it: truncated. */
  payloadShownBytesMax: limit(256, 'bytes'),
  /** Name of a device or topic accepted by command. Beyond it: 400. */
  choiceNameCharactersMax: limit(1024, 'characters'),
  /** Devices accepted or ignored by command. Beyond it: 403. */
  deviceChoicesMax: limit(10_000, 'choices'),
  /** Topics mapped or ignored by command. Beyond it: 403. */
  topicChoicesMax: limit(500, 'choices'),
  /** Source settings of a mapped topic. Beyond it: 403. */
  choiceBytesMax: limit(16_384, 'bytes'),
  /** Entries of each list of devices. Beyond it: counted, not listed. */
  devicesListedMax: limit(1000, 'entries'),
  /** Held frames decoded and stored together on release. Beyond it: the next turn. */
  framesReleasedAtOnce: limit(32, 'frames'),
  /** Device fields cached in memory. Beyond it: least recently used is evicted. */
  channelsMax: limit(50_000, 'channels'),
  /**
   * Identical payloads without a time within this window are duplicates. Beyond it: stored as a new
   * observation.
   */
  untimedWindowMs: limit(60_000, 'ms'),
  /** Memory of that window. Beyond it: oldest is evicted. */
  untimedDigestsMax: limit(20_000, 'digests'),
  /** No device measured before 2000. Beyond it: quarantined. */
  observedAtFloorMs: limit(946_684_800_000, 'ms since 1970'),
  /** Clock errors of devices. Beyond it: quarantined. */
  futureSkewMs: limit(24 * 3_600_000, 'ms'),
} as const satisfies Record<string, Limit>
