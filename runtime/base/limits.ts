/**
 * Every ceiling of the system in one table: value, unit, why it is that number, and what happens beyond it.
 * No queue, cache, buffer, retry or loop may exist without an entry here.
 */

export interface Limit {
  readonly value: number
  readonly unit: string
  readonly reason: string
  readonly beyond: string
}

const limit = (value: number, unit: string, reason: string, beyond: string): Limit => ({
  value,
  unit,
  reason,
  beyond,
})

export const limits = {
  // The door (commit path)
  groupObservationsMax: limit(1024, 'observations', 'One commit near the bound of limits per flush', 'next group'),
  groupEntityWorksMax: limit(256, 'works', 'Bounds the deciding time of one turn', 'next group'),
  groupBytesMax: limit(4 * 1024 * 1024, 'bytes', 'Bounds memory of the group in flight', 'next group'),
  lingerObservationsMax: limit(256, 'observations', 'More gain little per flush', 'the linger ends'),
  lingerMsMax: limit(2000, 'ms', 'Devices time out beyond', 'settings are refused'),
  queueWorksMax: limit(20_000, 'works', 'About 20 MB of waiting frames', 'QoS 0 dropped, QoS 1 waits, HTTP 503'),
  queueBytesMax: limit(32 * 1024 * 1024, 'bytes', 'Memory of a small board', 'QoS 0 dropped, QoS 1 waits, HTTP 503'),
  answersPerTurn: limit(16, 'answers', 'Keeps event-loop delay low after big commits', 'the next turn'),
  walPagesMax: limit(2000, 'pages', 'A larger WAL saves writes; 8 MB of disk', 'PASSIVE checkpoint'),
  // Log, tail, chunks
  logBytesMax: limit(64 * 1024 * 1024, 'bytes', 'A follower reads its tail from it', 'oldest folded rows are deleted'),
  logAgeMsMax: limit(6 * 3_600_000, 'ms', 'The same, by time', 'oldest folded rows are deleted'),
  tailObservationsMax: limit(600_000, 'observations', '16 MB of unfolded history in memory', 'largest tails fold early'),
  chunkObservations: limit(1024, 'observations', 'zstd pays from 512; reads decode whole chunks', 'next chunk'),
  chunkPartialMin: limit(512, 'observations', 'Smaller last chunks are merged with what follows', 'kept as it is'),
  tailAgeMs: limit(30 * 60_000, 'ms', 'Bounds the replay after a crash', 'the stream folds whatever its size'),
  entityRecordsUnfoldedMax: limit(32_768, 'records', 'Index of unfolded entity changes in memory', 'oldest fold early'),
  foldsPerGroup: limit(16, 'streams', 'Packing all streams at once would stall the writer', 'the next group'),
  writebackMs: limit(60_000, 'ms', 'Each dirty document is written once per interval', 'written at the next tick'),
  writebacksPerGroup: limit(256, 'documents', 'Bounds one commit', 'the next group'),
  streamsLiveMax: limit(50_000, 'streams', 'About 25 MB of live stream state', 'idle ones leave memory'),
  streamsMax: limit(4_000_000, 'streams', 'Numbers fit 22 bits of the chunk key', 'store.failed'),
  // NGSI-LD
  entityBytesMax: limit(1024 * 1024, 'bytes', 'One row, one answer', '413'),
  jsonDepthMax: limit(64, 'levels', 'Recursion stays within the stack', '400'),
  attributesPerEntityMax: limit(1000, 'attributes', 'One document is parsed per write', '400'),
  queryCharactersMax: limit(8192, 'characters', 'URLs above are not portable', '403'),
  queryTermsMax: limit(128, 'terms', 'Bounds evaluation', '403'),
  patternCharactersMax: limit(512, 'characters', 'Bounds pattern compilation', '403'),
  patternStatesMax: limit(500, 'states', 'Bounds the cost of one character of a text', '403'),
  patternTextMax: limit(131_072, 'characters', 'Bounds the cost of one comparison', 'matches no pattern'),
  queryNestingMax: limit(32, 'levels', 'Parentheses within a query; recursion stays within the stack', '403'),
  geometryPositionsMax: limit(10_000, 'positions', 'Bounds one geometric comparison', '403'),
  pageDefault: limit(50, 'entities', 'As the original broker', 'a next link'),
  pageMax: limit(1000, 'entities', 'Bounds one answer', '403'),
  temporalInstancesMax: limit(10_000, 'instances', 'Bounds one answer', '206 with Content-Range'),
  batchEntitiesMax: limit(10_000, 'entities', 'Bounds one request', '413'),
  bodyBytesMax: limit(8 * 1024 * 1024, 'bytes', 'One request in memory', '413'),
  contextBytesMax: limit(1024 * 1024, 'bytes', 'Largest public context is 300 kB', '504'),
  contextsCachedMax: limit(200, 'contexts', 'Compiled term maps in memory', 'least recently used leaves'),
  nameCharactersMax: limit(512, 'characters', 'IRIs of ontologies stay below 200', '400'),
  contextDepthMax: limit(8, 'documents', 'Contexts that name contexts', '400'),
  contextDocumentsMax: limit(64, 'documents', 'Read for one @context', '400'),
  contextTermsMax: limit(20_000, 'terms', 'The largest public context has 3,000', '400'),
  contextNamesKeptMax: limit(512, 'names', 'Per context and direction, found once', 'all are forgotten'),
  contextRedirectsMax: limit(5, 'redirects', 'As browsers, but fewer', '504'),
  contextFailureMs: limit(5000, 'ms', 'An absent context is not asked for by every request', 'asked again'),
  contextAgeMs: limit(86_400_000, 'ms', 'Where the answer states no age', 'fetched again, the old one stands in'),
  contextFetchMs: limit(5000, 'ms', 'A request waits for it', '504'),
  subscriptionsMax: limit(10_000, 'subscriptions', 'Per tenant; the matcher is indexed', '403'),
  tenantsMax: limit(64, 'tenants', 'One database file and cache each', '403'),
  // MQTT
  mqttPacketBytesMax: limit(1024 * 1024, 'bytes', 'One frame in memory', 'connection closed'),
  frameBytesMax: limit(256 * 1024, 'bytes', 'Sensors send less', 'quarantined'),
  topicLevelsMax: limit(32, 'levels', 'Matching cost grows with depth', 'connection closed'),
  topicBytesMax: limit(1024, 'bytes', 'Index keys stay small', 'connection closed'),
  mqttClientsMax: limit(2000, 'clients', 'About 80 kB each', 'connection refused'),
  sessionMessagesMax: limit(10_000, 'messages', 'Per absent session', 'oldest is dropped and counted'),
  sessionBytesMax: limit(8 * 1024 * 1024, 'bytes', 'Per absent session', 'oldest is dropped and counted'),
  sessionsBytesMax: limit(128 * 1024 * 1024, 'bytes', 'All absent sessions', 'oldest of the largest is dropped'),
  sessionsMax: limit(2000, 'sessions', 'Persistent sessions known', 'CONNECT refused'),
  sessionAgeMs: limit(14 * 86_400_000, 'ms', 'A forgotten client', 'the session ends'),
  retainedMessagesMax: limit(20_000, 'messages', 'Index in memory', 'new topics are not retained'),
  retainedBytesMax: limit(16 * 1024 * 1024, 'bytes', 'Held in memory', 'new topics are not retained'),
  subscriptionsPerClientMax: limit(500, 'filters', 'Bounds matching', 'SUBACK failure'),
  qos2InFlightMax: limit(1000, 'messages', 'Per client awaiting PUBREL', 'connection closed'),
  bridgeInFlightMax: limit(256, 'messages', 'Unacknowledged at the external broker', 'TCP pushes back'),
  // Intake
  readingsPerFrameMax: limit(1024, 'readings', 'One frame, one decision', 'quarantined'),
  problemsPerFrameMax: limit(16, 'problems', 'Enough to mend a mapping', 'the others are only counted'),
  nameCharactersMax: limit(256, 'characters', 'Device and field names become keys', 'the reading is refused'),
  quarantineFramesMax: limit(1000, 'frames', 'Replayable after a mapping is mended', 'oldest is dropped'),
  quarantineBytesMax: limit(4 * 1024 * 1024, 'bytes', 'The same, by size', 'oldest is dropped'),
  channelsMax: limit(50_000, 'channels', 'Device fields known in memory', 'least recently used leaves'),
  untimedWindowMs: limit(60_000, 'ms', 'Repeats of untimed payloads', 'a repeat is an observation'),
  untimedDigestsMax: limit(20_000, 'digests', 'Memory of the window', 'oldest is forgotten'),
  observedAtFloorMs: limit(946_684_800_000, 'ms since 1970', 'No device measured before 2000', 'quarantined'),
  futureSkewMs: limit(24 * 3_600_000, 'ms', 'Clock errors of devices', 'quarantined'),
  // Delivery
  deliveriesPerEndpointMax: limit(200_000, 'deliveries', 'About 20 MB on disk', 'oldest is dropped and counted'),
  deliveriesWindow: limit(512, 'deliveries', 'Held in memory per endpoint', 'read later'),
  deliveriesWindowBytes: limit(512 * 1024, 'bytes', 'The same, by size', 'read later'),
  deliveriesInFlightMax: limit(8, 'requests', 'Per endpoint', 'waits'),
  deliveriesInFlightHostMax: limit(16, 'requests', 'All endpoints of one host and port; as many connections', 'waits'),
  deliveriesInFlightTotalMax: limit(128, 'requests', 'Sockets and bodies in memory', 'waits'),
  deliveriesPerTurn: limit(16, 'requests', 'Started in one turn of the event loop', 'the next turn'),
  deliverySettleMax: limit(256, 'deliveries', 'Settled in one work', 'settled at once, not after a second'),
  deliverySettleMs: limit(1000, 'ms', 'Flash writes; sent again after a crash', 'settled'),
  deliveryPoisonTries: limit(5, 'tries', 'A 4xx will not heal', 'dead letter'),
  deadLettersMax: limit(10_000, 'deliveries', 'For inspection', 'oldest is dropped'),
  deliveryBytesMax: limit(2 * 1024 * 1024, 'bytes', 'A whole entity and its context', 'dead letter'),
  deliveryAnswerBytesMax: limit(64 * 1024, 'bytes', 'Answers are read and dropped', 'connection closed'),
  deliveryConnectMs: limit(3000, 'ms', 'A host that is not there', 'the endpoint is down'),
  deliveryTimeoutMs: limit(10_000, 'ms', 'A frozen endpoint', 'counts as failed'),
  deliveryTimeoutMsMax: limit(120_000, 'ms', 'What a subscription may ask for', 'stays there'),
  deliveryBackoffMsMax: limit(60_000, 'ms', 'Longest pause after an answer of failure', 'stays there'),
  deliveryPauseMsMax: limit(3_600_000, 'ms', 'Longest Retry-After or cooldown obeyed', 'stays there'),
  endpointsMax: limit(1000, 'endpoints', 'Connections and breakers', '403'),
  // Process
  settingsBytesMax: limit(4 * 1024 * 1024, 'bytes', 'About 20,000 declared devices', 'settings are refused'),
  settingsDepthMax: limit(64, 'levels', 'Recursion stays within the stack', 'settings are refused'),
  closeMs: limit(8000, 'ms', 'systemd kills after ten seconds', 'open work is abandoned; it is on disk'),
  httpConnectionsMax: limit(1000, 'connections', 'File descriptors', 'refused'),
  httpHeaderBytesMax: limit(16_384, 'bytes', 'As node:http', '431'),
  httpHeadersMs: limit(10_000, 'ms', 'A client that sends headers slowly holds a connection', '408'),
  httpRequestMs: limit(60_000, 'ms', 'The same for a whole request; 8 MB over a slow radio link', '408'),
  httpKeepAliveMs: limit(30_000, 'ms', 'Idle connections', 'connection closed'),
} as const satisfies Record<string, Limit>

export type LimitName = keyof typeof limits
