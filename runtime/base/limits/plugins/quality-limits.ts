/**
 * Ceilings of the quality analyser; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const qualityLimits = {
  /** Each takes about 2 KB of memory. Beyond it: further streams get no quality. */
  qualityStreamsMax: limit(20_000, 'streams'),
  /** Spans of downtime of the gateway. Beyond it: the oldest counts as missing values. */
  qualityDowntimesMax: limit(100, 'spans'),
  /** Streams in one response of the list. Beyond it: the next page. */
  qualityPageStreams: limit(1000, 'streams'),
  /** Values of a metric in one history. Beyond it: the newest. */
  qualityHistoryValues: limit(120, 'values'),
  /** Entries in the table of usual properties. Beyond it: rejected. */
  qualityPropertiesMax: limit(500, 'entries'),
  /**
   * Newest observations of a stream of a remote broker whose times are stored. Beyond it: an older one counts
   * as known.
   */
  qualityCountedMax: limit(256, 'observations'),
  /** Past observations of such a stream that are read after an interruption. Beyond it: the newest. */
  qualityHistoryMax: limit(10_000, 'observations'),
  /** Subscriptions that people created at the analyser. Beyond it: 400. */
  qualitySubscriptionsMax: limit(100, 'subscriptions'),
  /** Notifications of a remote broker that are being processed. Beyond it: 503. */
  qualityNotificationsMax: limit(256, 'notifications'),
  /** Ids that a remote broker does not have, or reported during a read. Beyond it: cleared. */
  qualityIdsKept: limit(20_000, 'ids'),
  /** Notifications that arrive together share a transaction. Beyond it: saved. */
  qualityReceiveMs: limit(5, 'ms'),
  /** Records in memory only; a restart counts the log since then again. Beyond it: saved. */
  qualitySaveMs: limit(60_000, 'ms'),
  /** Observation entities whose values wait until their stream is known. Beyond it: the oldest is dropped. */
  qualityWaitingMax: limit(1_000, 'entities'),
  /** Values of each that wait. Beyond it: the oldest is dropped. */
  qualityWaitingValues: limit(32, 'values'),
  /** Rows saved without yielding. Beyond it: the next turn of the event loop. */
  qualitySaveSliceMs: limit(10, 'ms'),
  /** Precision of the timers of silent streams and of delayed writes. Beyond it: the next tick. */
  qualityTickMs: limit(250, 'ms'),
  /** One turn of the timer wheel, about four minutes. Beyond it: another turn. */
  qualityWheelSlots: limit(1024, 'slots'),
  /** Changes of several streams share a request. Beyond it: written. */
  qualityGatherMs: limit(20, 'ms'),
  /**
   * Wait for the entity that a stream names as its quality although it does not exist. Beyond it: the stream
   * is linked to the quality that the analyser writes.
   */
  qualityLinkWaitMs: limit(60_000, 'ms'),
  /** Qualities in one batch request. Beyond it: the next request. */
  qualityBatchStreams: limit(100, 'streams'),
  /** Places in it for qualities whose rated values did not change. Beyond it: the next request. */
  qualityBatchOthers: limit(20, 'streams'),
  /** Longest pause between attempts to write to a broker that fails. Beyond it: the next attempt. */
  qualityRetryMs: limit(60_000, 'ms'),
  /** Message brokers that streams name as their source. Beyond it: further ones are not followed; status. */
  qualitySourcesMax: limit(64, 'brokers'),
  /** Topics, queues and exchanges of one of them. Beyond it: further ones are not followed; status. */
  qualitySourcePlacesMax: limit(1_000, 'places'),
  /** Streams and access details are read again after changes. Beyond it: read. */
  qualitySourceGatherMs: limit(250, 'ms'),
  /** Messages of sources are stored together. Beyond it: stored, counted and acknowledged. */
  qualitySourceStoreMs: limit(50, 'ms'),
  /** Messages stored and counted without yielding. Beyond it: the next turn. */
  qualitySourceBatch: limit(256, 'messages'),
  /** Pause between two reads of an NGSI-LD source. Beyond it: the next read. */
  qualitySourcePollMs: limit(5_000, 'ms'),
  /** Observations of a stream that such a read takes, the newest. Beyond it: not counted. */
  qualitySourcePolled: limit(10_000, 'observations'),
  /** Pause after the disk rejected them. Beyond it: the next attempt. */
  qualitySourceRetryMs: limit(1_000, 'ms'),
  /** Newest messages of a source by which repeated ones are recognized. Beyond it: the oldest is dropped. */
  qualitySourceDigests: limit(1_024, 'messages'),
  /** Stored messages that the saved records do not include. Beyond it: the records are saved. */
  qualitySourceMessages: limit(10_000, 'messages'),
} as const satisfies Record<string, Limit>
