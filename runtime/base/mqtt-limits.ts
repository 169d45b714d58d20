/**
 * Ceilings of the MQTT broker and of bridges to other brokers: packets, clients, sessions, retained messages, passwords. Part
 * of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const mqttLimits = {
  mqttPacketBytesMax: limit(1024 * 1024, 'bytes', 'One frame in memory', 'connection closed'),
  frameBytesMax: limit(256 * 1024, 'bytes', 'Sensors send less', 'quarantined'),
  mqttTurnMs: limit(2, 'ms', 'Messages read before others have their turn', 'read in the next turn'),
  topicLevelsMax: limit(32, 'levels', 'Matching cost grows with depth', 'connection closed'),
  topicBytesMax: limit(1024, 'bytes', 'Index keys stay small', 'connection closed'),
  mqttClientsMax: limit(2000, 'clients', 'About 80 kB each', 'connection refused'),
  sessionMessagesMax: limit(10_000, 'messages', 'Per absent session', 'oldest is dropped and counted'),
  sessionBytesMax: limit(8 * 1024 * 1024, 'bytes', 'Per absent session', 'oldest is dropped and counted'),
  sessionsBytesMax: limit(
    128 * 1024 * 1024,
    'bytes',
    'All absent sessions',
    'oldest of the largest is dropped',
  ),
  sessionsMax: limit(2000, 'sessions', 'Persistent sessions known', 'CONNECT refused'),
  sessionAgeMs: limit(14 * 86_400_000, 'ms', 'A forgotten client', 'the session ends'),
  retainedMessagesMax: limit(20_000, 'messages', 'Index in memory', 'new topics are not retained'),
  retainedBytesMax: limit(16 * 1024 * 1024, 'bytes', 'Held in memory', 'new topics are not retained'),
  subscriptionsPerClientMax: limit(500, 'filters', 'Bounds matching', 'SUBACK failure'),
  qos2InFlightMax: limit(1000, 'messages', 'Per client awaiting PUBREL', 'connection closed'),
  bridgeInFlightMax: limit(256, 'messages', 'Unacknowledged at the external broker', 'TCP pushes back'),
  bridgeRetryMsMax: limit(60_000, 'ms', 'Longest pause before connecting again', 'stays there'),
  mqttConnectBytesMax: limit(
    256 * 1024,
    'bytes',
    'Will, user name and password of one CONNECT',
    'connection closed',
  ),
  mqttConnectMs: limit(10_000, 'ms', 'From the connection to its CONNECT', 'connection closed'),
  mqttPartialBytesMax: limit(
    32 * 1024 * 1024,
    'bytes',
    'Packets of all clients that have not wholly come',
    'connection closed',
  ),
  mqttClientIdBytesMax: limit(256, 'bytes', 'Key of the session', 'CONNECT refused'),
  mqttHoldMs: limit(
    5000,
    'ms',
    'A disk that refuses a commit may recover',
    'connection closed without PUBACK',
  ),
  clientInFlightMax: limit(512, 'messages', 'Taken from one client and not yet committed', 'TCP pushes back'),
  framesInFlightBytesMax: limit(
    16 * 1024 * 1024,
    'bytes',
    'Frames of all clients not yet committed',
    'TCP pushes back',
  ),
  routesMax: limit(
    20_000,
    'topics',
    'Topics whose subscribers are remembered',
    'all are forgotten and found again',
  ),
  sessionInFlightMax: limit(100, 'messages', 'Sent to one session and not yet acknowledged', 'waits on disk'),
  subscriberBacklogBytesMax: limit(
    512 * 1024,
    'bytes',
    'Unsent to one client',
    'QoS 0 dropped, else connection closed',
  ),
  subscriberUnackedMax: limit(8192, 'messages', 'Message ids without a session', 'connection closed'),
  subscriberStallMs: limit(60_000, 'ms', 'A client that takes nothing', 'connection closed'),
  willGraceMs: limit(
    60_000,
    'ms',
    'Clients come back after a restart',
    'wills of those who did not are published',
  ),
  passwordsCheckedMax: limit(2, 'passwords', 'Hashed at the same time, 16 MB each', 'waits'),
  passwordsWaitingMax: limit(256, 'logins', 'A storm of new passwords', 'login refused'),
  passwordsKnownMax: limit(
    4096,
    'passwords',
    'Digests of right and wrong ones, so that none is hashed twice',
    'oldest is forgotten',
  ),
} as const satisfies Record<string, Limit>
