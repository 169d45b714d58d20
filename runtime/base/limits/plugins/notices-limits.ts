/**
 * Ceilings of subscriptions and notifications at the orchestrator; part of the table in limits.ts.
 */
import { type Limit, limit } from '#base/limits/limit.ts'

export const noticesLimits = {
  /** Subscriptions that the orchestrator receives notifications for; 1 KB of memory each. Beyond it: 403. */
  orchestratorSubscriptionsMax: limit(10_000, 'subscriptions'),
  /** Clients that share one such subscription. Beyond it: 403. */
  orchestratorSharersMax: limit(1_000, 'clients'),
  /** A notification; at least what the own broker sends. Beyond it: 413. */
  orchestratorNotificationBytes: limit(2 * 1024 * 1024, 'bytes'),
  /** Notifications that are being stored. Beyond it: 503. */
  orchestratorArrivingBytes: limit(16 * 1024 * 1024, 'bytes'),
  /** Notifications that wait on disk. Beyond it: the oldest tenth is given up, counted and logged. */
  orchestratorWaitingMax: limit(500_000, 'notifications'),
  /** Their bytes on disk. Beyond it: the oldest are given up until a tenth is free. */
  orchestratorWaitingBytes: limit(256 * 1024 * 1024, 'bytes'),
  /** Rows read at once. Beyond it: the next page. */
  orchestratorReadPage: limit(64, 'notifications'),
  /** Progress in memory only; a kill repeats these notifications. Beyond it: saved. */
  orchestratorProgressMs: limit(250, 'ms'),
  /** Such progress in steps. Beyond it: saved at once. */
  orchestratorSaveSteps: limit(512, 'steps'),
  /** Notifications sent and not yet confirmed by the AMQP server. Beyond it: waits. */
  orchestratorInFlightMax: limit(1024, 'notifications'),
  /** Their bytes in memory. Beyond it: waits. */
  orchestratorInFlightBytes: limit(4 * 1024 * 1024, 'bytes'),
  /** A notification sent and not confirmed by the AMQP server. Beyond it: reported. */
  orchestratorConfirmMs: limit(30_000, 'ms'),
  /** A subscribing client waits so long for the declaration of its exchange. Beyond it: declared later. */
  orchestratorDeclareMs: limit(5000, 'ms'),
  /** First pause after a full queue; it doubles. Beyond it: `deliveryBackoffMsMax`. */
  orchestratorPauseMs: limit(250, 'ms'),
  /** How often subscriptions at the broker, and refused exchanges, are checked. Beyond it: checked again. */
  orchestratorCheckMs: limit(30_000, 'ms'),
  /** How often copies of subscriptions in Redis are renewed. Beyond it: renewed. */
  orchestratorCopyMs: limit(60_000, 'ms'),
  /** Age of a copy that is not renewed. Beyond it: Redis deletes it. */
  orchestratorCopyExpiryMs: limit(300_000, 'ms'),
  /** Copies sent to Redis without a pause. Beyond it: other work comes first. */
  orchestratorCopyPage: limit(100, 'subscriptions'),
  /** Pause after the broker failed during that check; it doubles. Beyond it: `orchestratorCheckMs`. */
  orchestratorCheckRetryMs: limit(500, 'ms'),
  /** Subscriptions named in the status. Beyond it: not shown. */
  orchestratorShown: limit(20, 'subscriptions'),
  /** Messages in the quorum queue of a client. Beyond it: rejected, so they wait in the outbox. */
  orchestratorQueueMessages: limit(100_000, 'messages'),
  /** Bytes in such a queue. Beyond it: rejected, so they wait in the outbox. */
  orchestratorQueueBytes: limit(256 * 1024 * 1024, 'bytes'),
  /** Bytes of the stream of a subscription. Beyond it: the server deletes the oldest segment. */
  orchestratorStreamBytes: limit(256 * 1024 * 1024, 'bytes'),
  /** Unconfirmed notifications of a stream that a client fetches. Beyond it: the oldest are given up. */
  orchestratorStreamMax: limit(10_000, 'notifications'),
  /** Streams of all subscriptions that are watched for failures. Beyond it: not watched, and counted. */
  orchestratorWatchedMax: limit(20_000, 'streams'),
  /** Entities that one subscription selects, of which streams are watched. Beyond it: the first ones. */
  orchestratorSelectedMax: limit(1_000, 'entities'),
  /** Entities in one page while those of a subscription without ids are read. Beyond it: the next page. */
  orchestratorSelectedPage: limit(100, 'entities'),
  /** Time from a created entity to reading subscriptions without ids again. Beyond it: read. */
  orchestratorResolveMs: limit(2_000, 'ms'),
  /** Entities known not to be selected by any subscription. Beyond it: all are forgotten. */
  orchestratorOthersMax: limit(10_000, 'entities'),
  /** Candidates that the ranking returns for a failed stream. Beyond it: not considered. */
  orchestratorCandidatesMax: limit(20, 'streams'),
  /** Alternatives in a notice. Beyond it: the best ones. */
  orchestratorAlternativesMax: limit(5, 'streams'),
  /** Pause after the check of a stream, three times as long as the check. Beyond it: the next check. */
  orchestratorCheckRestMs: limit(1_000, 'ms'),
  /** Time from a failed check of a stream to the next one. Beyond it: checked again. */
  orchestratorRecheckMs: limit(5_000, 'ms'),
  /** Time between requests that confirm that another broker is unreachable. Beyond it: the next request. */
  orchestratorProbeMs: limit(1_000, 'ms'),
  /** A search for alternatives. Beyond it: none. */
  orchestratorSearchMs: limit(1_000, 'ms'),
  /** Longest pause before connecting to the AMQP server again. Beyond it: stays at this. */
  amqpPublishRetryMsMax: limit(5_000, 'ms'),
} as const satisfies Record<string, Limit>
