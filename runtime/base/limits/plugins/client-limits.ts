/**
 * Ceilings of what plugins do at other brokers; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const clientLimits = {
  /** Interval of checking that subscriptions of plugins at this gateway exist. Beyond it: the next check. */
  ownSubscriptionsCheckMs: limit(60_000, 'ms'),
  /** One request of a plugin to a broker that it follows. Beyond it: the broker counts as down. */
  clientRequestMs: limit(10_000, 'ms'),
  /** Pages of one type of a broker. Beyond it: it counts as refusing. */
  clientPagesMax: limit(20_000, 'pages'),
  /** Ids in the URL of a request. Beyond it: the next request. */
  clientIdsPerRequest: limit(50, 'ids'),
  /** Registrations of a broker whose endpoints are learnt. Beyond it: ignored. */
  clientSourcesMax: limit(1000, 'registrations'),
  /** Characters of an error message of a broker. Beyond it: truncated. */
  clientReasonCharacters: limit(300, 'characters'),
  /** Interval of checking whether a followed broker is reachable. Beyond it: the next check. */
  followCheckMs: limit(10_000, 'ms'),
  /** Pause between full reads caused by failed notifications. Beyond it: the next failure. */
  followMissedMs: limit(600_000, 'ms'),
  /** Entities in one notification to a plugin. Beyond it: 400. */
  clientItemsMax: limit(1_000, 'entities'),
  /** Members of an entity that another broker or a client sends to a plugin. Beyond it: not read. */
  clientMembersMax: limit(1_000, 'members'),
  /** Entities read at a time. Beyond it: the next page. */
  clientReadPage: limit(32, 'entities'),
  /** Observation entities whose stream is not known yet. Beyond it: read again with their next value. */
  clientUnplacedMax: limit(1_000, 'entities'),
  /** Ids of observed entities that belong to no stream. Beyond it: looked up again. */
  clientOthersMax: limit(20_000, 'ids'),
  /** Known observation entities of a stream. Beyond it: the oldest is read again with its next value. */
  clientObservationsMax: limit(64, 'entities'),
  /** Streams left out of a plugin that are counted. Beyond it: not counted. */
  leftOutStreamsMax: limit(20_000, 'streams'),
  /** Time of an observation after its arrival. Beyond it: plugins ignore the observation. */
  observationAheadMs: limit(86_400_000, 'ms'),
} as const satisfies Record<string, Limit>
