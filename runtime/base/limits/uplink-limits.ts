/**
 * Ceilings of uplinks; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const uplinkLimits = {
  /** Each differing bucket costs a pass over all entities. Beyond it: everything is compared page by page. */
  reconcileBucketsMax: limit(32, 'buckets'),
  /** Histories compared per batch. Beyond it: the next turn. */
  reconcileHistories: limit(20, 'entities'),
  /**
   * Disconnections shorter than this need no comparison. Beyond it: the central broker is compared with this
   * one.
   */
  reconcileAfterMs: limit(86_400_000, 'ms'),
  /** Interval of recording what the central broker holds while data is sent. Beyond it: the next check. */
  reconcileNoteMs: limit(10_000, 'ms'),
  /** Interval of checking whether the central broker holds less than before. Beyond it: the next check. */
  reconcileCheckMs: limit(600_000, 'ms'),
  /** Entities read at once for a comparison. Beyond it: the next ones. */
  digestEntitiesPerTurn: limit(16, 'entities'),
  /** Instances of one attribute digested without yielding. Beyond it: the next turn. */
  digestInstancesPerTurn: limit(4000, 'instances'),
  /** Entities whose histories are requested at once. Beyond it: 400. */
  digestIdsMax: limit(100, 'entities'),
  /** Brokers of a Via chain stored with a write. Beyond it: the first and the last are kept. */
  viaHopsMax: limit(16, 'brokers'),
  /** Log rows sent before the position is advanced. Beyond it: the next turn. */
  uplinkRowsPerTurn: limit(64, 'log rows'),
  /** Every known broker accepts this many in one batch. Beyond it: the next request. */
  uplinkEntitiesPerRequest: limit(200, 'entities'),
  /**
   * Rendered and stored in a few ms, so that other requests run at both ends. Beyond it: the next request.
   */
  uplinkInstancesPerRequest: limit(250, 'instances'),
  /** History is read this long before other requests run. Beyond it: the next turn. */
  uplinkTurnMs: limit(2, 'ms'),
  /** Every known broker returns at least twice as many in one response. Beyond it: the next request. */
  uplinkInstancesPerQuery: limit(400, 'instances'),
  /** Ids in the URL of a request. Beyond it: the next request. */
  uplinkAddressBytes: limit(4096, 'bytes'),
  /** Transmitted over slow links within a timeout. Beyond it: the next request. */
  uplinkRequestBytes: limit(512 * 1024, 'bytes'),
  /** Compressing less gains nothing. Beyond it: sent uncompressed. */
  uplinkGzipBytesMin: limit(1024, 'bytes'),
  /** A full request over a slow link. Beyond it: sent again after a pause. */
  uplinkTimeoutMs: limit(20_000, 'ms'),
  /**
   * Longest time until a sent change is stored at the centre; covers slow proxies and clock differences.
   * Beyond it: at a centre that does not report origins, later writes are attributed to other clients.
   */
  uplinkArrivalMs: limit(300_000, 'ms'),
  /** Hides the network delay during backfill. Beyond it: waits. */
  uplinkRequestsInFlight: limit(4, 'requests'),
  /**
   * A response this much slower than the quickest one shows that backfill loads the centre. Beyond it: fewer
   * concurrent requests.
   */
  uplinkDelayMs: limit(20, 'ms'),
  /** How long the quickest response time is valid. Beyond it: measured again. */
  uplinkQuickestMs: limit(60_000, 'ms'),
  /** Pause of a lane; changes of this time are sent together. Beyond it: the next request. */
  uplinkPollMs: limit(100, 'ms'),
  /** Interval of looking for what is due at a time, while nothing is committed. Beyond it: the next check. */
  uplinkRestMs: limit(1000, 'ms'),
  /** A week; a longer window is no window. Beyond it: rejected. */
  uplinkWindowMinutesMax: limit(10_080, 'minutes'),
  /**
   * Window of the arrival rate that predicts how long the budget lasts. Beyond it: older arrivals are not
   * counted.
   */
  uplinkRateMs: limit(600_000, 'ms'),
  /** Age of the figures shown to operators. Beyond it: measured again. */
  uplinkMeasureMs: limit(10_000, 'ms'),
  /** Streams matched with the selection of an uplink at once. Beyond it: matched in the next checks. */
  uplinkStreamsPerCheck: limit(5000, 'streams'),
  /** Streams whose match is cached. Beyond it: the oldest is matched again. */
  uplinkStreamsKnownMax: limit(200_000, 'streams'),
  /** Interval of comparing the backlog with its budget. Beyond it: the next check. */
  uplinkBudgetMs: limit(30_000, 'ms'),
  /** Parts of a span of history that are thinned or dropped one by one. Beyond it: longer parts. */
  uplinkBudgetParts: limit(64, 'parts'),
  /** Shorter parts gain nothing. Beyond it: one part. */
  uplinkBudgetPartMs: limit(1000, 'ms'),
  /** How soon a pause or a window takes effect. Beyond it: the next check. */
  uplinkPauseCheckMs: limit(1000, 'ms'),
  /**
   * Share of the daily bytes reserved for live values; shrinks as the day passes. Beyond it: history waits
   * until later that day.
   */
  uplinkDayReservePercent: limit(50, 'percent'),
  /**
   * Each lane may send this and one more request per day, however small the daily budget. Beyond it: waits
   * for the next day.
   */
  uplinkDayLeastBytes: limit(4096, 'bytes'),
  /**
   * The position is saved at most once a second; the centre recognizes repeated changes. Beyond it: the next
   * save.
   */
  uplinkSaveMs: limit(1000, 'ms'),
  /** An uplink further behind sends current values first. Beyond it: history is sent afterwards. */
  uplinkBehindMs: limit(5000, 'ms'),
  /** Initial span of history sent at a time. Beyond it: the next slice. */
  uplinkSliceMs: limit(60_000, 'ms'),
  /** Longest span, for sites with few values. Beyond it: the next slice. */
  uplinkSliceMsMax: limit(3_600_000, 'ms'),
  /** Observations in one slice. Beyond it: a shorter slice. */
  uplinkSliceObservations: limit(100_000, 'observations'),
  /**
   * Entities that the centre holds in full, where values select. Beyond it: the oldest is sent in full again.
   */
  uplinkFullySyncedMax: limit(200_000, 'entities'),
  /** Refused changes of one uplink, kept for inspection. Beyond it: the oldest is dropped and reported. */
  uplinkRefusalsMax: limit(10_000, 'steps'),
  /** Detected capabilities of the centre may change. Beyond it: detected again. */
  uplinkRecheckMs: limit(4 * 3_600_000, 'ms'),
  /**
   * A server that restarts fails a few times; each item gets more attempts than this. Beyond it: set aside as
   * refused if it has also failed long enough.
   */
  uplinkSetbackTries: limit(5, 'tries'),
  /** How long one item may fail while others of its batch are accepted. Beyond it: set aside as refused. */
  uplinkSetbackMs: limit(120_000, 'ms'),
  /**
   * How long a batch of one item may fail: whether others are accepted is unknown. Beyond it: set aside as
   * refused.
   */
  uplinkSetbackAloneMs: limit(3_600_000, 'ms'),
  /** Entities whose failures are counted. Beyond it: the oldest count is reset. */
  uplinkSetbacksMax: limit(10_000, 'entities'),
  /** Refused changes of one uplink, on disk. Beyond it: the oldest is dropped and reported. */
  uplinkRefusalBytesMax: limit(32 * 1024 * 1024, 'bytes'),
  /** Pairs of gateways that write the same attributes here. Beyond it: only counted. */
  collisionPairsMax: limit(100, 'pairs'),
  /** Two gateways that still collide do so again within this time. Beyond it: the collision is forgotten. */
  collisionKeptMs: limit(21_600_000, 'ms'),
  /** Entities recorded per pair of gateways. Beyond it: the count stops at this. */
  collisionEntitiesMax: limit(1000, 'entities'),
  /**
   * Attributes with dropped history not yet reported, in memory and as rows. Beyond it: one gap for the rest,
   * by reason.
   */
  uplinkLossesMax: limit(50_000, 'attributes'),
  /** Attributes with refused and dropped changes, to be reported as gaps. Beyond it: one gap for the rest. */
  uplinkRefusedGapsMax: limit(1000, 'attributes'),
  /** How soon a new uplink starts. Beyond it: the next check. */
  uplinksCheckMs: limit(1000, 'ms'),
  /** Pause of a lane after an internal error. Beyond it: it starts again. */
  uplinkFaultMs: limit(5000, 'ms'),
} as const satisfies Record<string, Limit>
