/**
 * Ceilings of the MQTT broker and of bridge-in; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const mqttLimits = {
  /** One frame in memory. Beyond it: connection closed. */
  mqttPacketBytesMax: limit(1024 * 1024, 'bytes'),
  /** Sensors send less. Beyond it: quarantined. */
  frameBytesMax: limit(256 * 1024, 'bytes'),
  /** Messages are read this long before other work runs. Beyond it: the next turn. */
  mqttTurnMs: limit(2, 'ms'),
  /** Matching cost grows with depth. Beyond it: connection closed. */
  topicLevelsMax: limit(32, 'levels'),
  /** Keeps index keys small. Beyond it: connection closed. */
  topicBytesMax: limit(1024, 'bytes'),
  /** About 80 kB each. Beyond it: connection refused. */
  mqttClientsMax: limit(2000, 'clients'),
  /** Per disconnected session. Beyond it: oldest is dropped and counted. */
  sessionMessagesMax: limit(10_000, 'messages'),
  /** Per disconnected session. Beyond it: oldest is dropped and counted. */
  sessionBytesMax: limit(8 * 1024 * 1024, 'bytes'),
  /** All disconnected sessions. Beyond it: oldest of the largest is dropped. */
  sessionsBytesMax: limit(128 * 1024 * 1024, 'bytes'),
  /** Persistent sessions. Beyond it: CONNECT refused. */
  sessionsMax: limit(2000, 'sessions'),
  /** A client that never returns. Beyond it: the session ends. */
  sessionAgeMs: limit(14 * 86_400_000, 'ms'),
  /** Index in memory. Beyond it: new topics are not retained. */
  retainedMessagesMax: limit(20_000, 'messages'),
  /** Held in memory. Beyond it: new topics are not retained. */
  retainedBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** Bounds matching. Beyond it: SUBACK failure. */
  subscriptionsPerClientMax: limit(500, 'filters'),
  /** Messages per client that await PUBREL. Beyond it: connection closed. */
  qos2InFlightMax: limit(1000, 'messages'),
  /** Messages of an external broker not yet acknowledged. Beyond it: TCP back-pressure. */
  bridgeInFlightMax: limit(256, 'messages'),
  /** Longest pause before reconnecting. Beyond it: stays at this. */
  bridgeRetryMsMax: limit(60_000, 'ms'),
  /** Will, user name and password of one CONNECT. Beyond it: connection closed. */
  mqttConnectBytesMax: limit(256 * 1024, 'bytes'),
  /** From the TCP connection to its CONNECT. Beyond it: connection closed. */
  mqttConnectMs: limit(10_000, 'ms'),
  /** Incomplete packets of all clients. Beyond it: connection closed. */
  mqttPartialBytesMax: limit(32 * 1024 * 1024, 'bytes'),
  /**
   * Unacknowledged QoS 1 and 2 messages of an MQTT 5 client (Receive Maximum). Beyond it: connection closed.
   */
  mqttReceiveMax: limit(512, 'messages'),
  /** MQTT 5 message properties that are forwarded to subscribers. Beyond it: connection closed. */
  messagePropertiesBytesMax: limit(16 * 1024, 'bytes'),
  /** User properties of one MQTT 5 message. Beyond it: connection closed. */
  userPropertiesMax: limit(128, 'pairs'),
  /** Topic aliases of one MQTT 5 connection. Beyond it: connection closed. */
  topicAliasesMax: limit(16, 'topics'),
  /** Key of the session. Beyond it: CONNECT refused. */
  mqttClientIdBytesMax: limit(256, 'bytes'),
  /** A disk that rejects a commit may recover. Beyond it: connection closed without PUBACK. */
  mqttHoldMs: limit(5000, 'ms'),
  /** Received from one client and not yet committed. Beyond it: TCP back-pressure. */
  clientInFlightMax: limit(512, 'messages'),
  /** Frames of all clients not yet committed. Beyond it: TCP back-pressure. */
  framesInFlightBytesMax: limit(16 * 1024 * 1024, 'bytes'),
  /** Topics whose subscribers are cached; 3 MB. Beyond it: the cache is cleared. */
  routesMax: limit(10_000, 'topics'),
  /** Sent to one session and not yet acknowledged. Beyond it: waits on disk. */
  sessionInFlightMax: limit(100, 'messages'),
  /**
   * Unsent to one client, or awaiting its Receive Maximum. Beyond it: QoS 0 dropped, else connection closed.
   */
  subscriberBacklogBytesMax: limit(512 * 1024, 'bytes'),
  /**
   * Unsent to all MQTT clients together; memory of a small board. Beyond it: each client may have
   * subscriberLagBytes unsent until there is room.
   */
  subscribersBacklogBytesMax: limit(32 * 1024 * 1024, 'bytes'),
  /**
   * Unsent to one client while subscribersBacklogBytesMax is exceeded. Beyond it: QoS 0 dropped, else
   * connection closed.
   */
  subscriberLagBytes: limit(64 * 1024, 'bytes'),
  /** Message ids of a client without a session. Beyond it: waits, up to the ceiling of unsent bytes. */
  subscriberUnackedMax: limit(8192, 'messages'),
  /** A client that reads nothing. Beyond it: connection closed. */
  subscriberStallMs: limit(60_000, 'ms'),
  /** Clients reconnect after a restart. Beyond it: wills of the others are published. */
  willGraceMs: limit(60_000, 'ms'),
  /** Concurrent password hashes, 16 MB each. Beyond it: waits. */
  passwordsCheckedMax: limit(2, 'passwords'),
  /** Many clients logging in with new passwords. Beyond it: login refused. */
  passwordsWaitingMax: limit(256, 'logins'),
  /** Digests of right and wrong passwords, so that none is hashed twice. Beyond it: oldest is evicted. */
  passwordsKnownMax: limit(4096, 'passwords'),
} as const satisfies Record<string, Limit>
