/**
 * Ceilings of intake: frames, readings, quarantine, choices of operators; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const intakeLimits = {
  readingsPerFrameMax: limit(1024, 'readings', 'One frame is decided as a whole', 'quarantined'),
  problemsPerFrameMax: limit(16, 'problems', 'Enough to correct a mapping', 'further ones are only counted'),
  deviceNameCharactersMax: limit(
    256,
    'characters',
    'Device and field names become keys',
    'the reading is rejected',
  ),
  topicsRememberedMax: limit(20_000, 'topics', 'Bridge lookups cached by topic', 'oldest is evicted'),
  quarantineFramesMax: limit(
    1000,
    'frames',
    'Can be replayed after a mapping is corrected',
    'oldest is dropped',
  ),
  quarantineBytesMax: limit(4 * 1024 * 1024, 'bytes', 'Bounds the quarantine by size', 'oldest is dropped'),
  unclaimedTopicsMax: limit(
    256,
    'topics',
    'Topics that no bridge reads, in memory',
    'the topic silent for longest is removed',
  ),
  unclaimedFramesPerTopicMax: limit(
    200,
    'frames',
    'Held in memory until the topic is mapped',
    'oldest is dropped',
  ),
  unclaimedBytesMax: limit(
    4 * 1024 * 1024,
    'bytes',
    'Held frames of all such topics',
    'the topic that holds most drops its oldest',
  ),
  unclaimedLinesMax: limit(
    100,
    'lines',
    'Log lines about new topics; then one per second',
    'counted in the next line',
  ),
  payloadShownBytesMax: limit(256, 'bytes', 'Bytes of a payload shown in the list of devices', 'truncated'),
  choiceNameCharactersMax: limit(1024, 'characters', 'Name of a device or topic accepted by command', '400'),
  deviceChoicesMax: limit(10_000, 'choices', 'Devices accepted or ignored by command', '403'),
  topicChoicesMax: limit(500, 'choices', 'Topics mapped or ignored by command', '403'),
  choiceBytesMax: limit(16_384, 'bytes', 'Source settings of a mapped topic', '403'),
  devicesListedMax: limit(1000, 'entries', 'Entries of each list of devices', 'counted, not listed'),
  framesReleasedAtOnce: limit(
    32,
    'frames',
    'Held frames decoded and stored together on release',
    'the next turn',
  ),
  channelsMax: limit(50_000, 'channels', 'Device fields cached in memory', 'least recently used is evicted'),
  untimedWindowMs: limit(
    60_000,
    'ms',
    'Identical payloads without a time within this window are duplicates',
    'stored as a new observation',
  ),
  untimedDigestsMax: limit(20_000, 'digests', 'Memory of that window', 'oldest is evicted'),
  observedAtFloorMs: limit(946_684_800_000, 'ms since 1970', 'No device measured before 2000', 'quarantined'),
  futureSkewMs: limit(24 * 3_600_000, 'ms', 'Clock errors of devices', 'quarantined'),
} as const satisfies Record<string, Limit>
