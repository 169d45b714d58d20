/**
 * Names defined by others: sections of planned components, and environment variables of the interface
 * specification and of the components it describes. When a component is built, its section and variables move
 * from these tables into the schema.
 */

/** Sections of components that this version does not contain; they are accepted unchecked and reported. */
export const absentSections = {
  identity: 'identity manager',
} as const satisfies Record<string, string>

export type AbsentSection = keyof typeof absentSections

/** Names of the components to which variables of the original platform belong. */
export const partNames = {
  ...absentSections,
  orchestrator: 'orchestrator',
  ranking: 'ranking',
  indexing: 'indexing',
  quality: 'quality analyser',
  faults: 'fault detection',
  patterns: 'pattern extractor',
  search: 'search enabler',
  'virtual-sensors': 'virtual sensor creator',
} as const

export type ForeignComponent = keyof typeof partNames

/** Variables of the original platform that set one of these settings, or several. */
export const aliasVariables: Readonly<Record<string, string | readonly string[]>> = {
  PLATFORM_ORCHESTRATOR_URL: 'search.backend',
  IOTCRAWLER_ORCHESTRATOR_URL: 'search.backend',
  VERSION: ['search.version', 'orchestrator.version'],
  PLATFORM_AMQP_HOST: 'orchestrator.amqp.host',
  IOTCRAWLER_RABBIT_HOST: 'orchestrator.amqp.host',
  PLATFORM_CACHE_HOST: 'orchestrator.cache.host',
  IOTCRAWLER_REDIS_HOST: 'orchestrator.cache.host',
  NGSILD_BROKER_URL: 'orchestrator.broker',
  HTTP_SERVER_PORT: 'orchestrator.port',
  HTTP_REFERENCE_URL: 'orchestrator.referenceUrl',
  RANKING_COMPONENT_URL: 'orchestrator.ranking',
  INDEXER_URL: 'ranking.backend',
  INDEXER_HOST: 'indexing.callbackUrl',
  PATTERN_HOST: 'patterns.callbackUrl',
  ENABLE_BATCH_OPERATIONS: 'patterns.batchOperations',
  NGSI_ADDRESS: ['quality.broker', 'faults.broker'],
  FD_HOST: 'faults.host',
  FD_PORT: 'faults.port',
  FD_CALLBACK: 'faults.callbackUrl',
  VS_CREATER_ADDRESS: 'faults.virtualSensors',
  SE_HOST: 'quality.host',
  SE_PORT: 'quality.port',
  SE_CALLBACK: 'quality.callbackUrl',
  BROKER_ADDRESS: 'virtual-sensors.broker',
  CALLBACK_ADDRESS: 'virtual-sensors.callbackUrl',
}

/** Variables of built components that have no effect here; they are accepted and reported. */
export const idleVariables: Readonly<Record<string, string>> = {
  CUT_TYPE_URIS: 'types are returned as the broker has them, in GraphQL as full IRIs',
  HTTP_SERVER_HOST: 'orchestrator.host sets the address that the orchestrator binds to',
  GRAPHQL_ENDPOINT_URL: 'the IDE sends requests to the address that served it',
  TRACK_EXECUTION_TIMES: 'the extensions of a response contain the reads of the operation and their time',
  LOG_LEVEL: 'log.level applies to all components',
  RECOVERY_METHOD: 'estimates come from neighbours, else from the daily course of the stream',
  REQUEST_LIMIT: 'docs/reference/limits.md has the size limit of bodies',
  SESSION_SECRET: 'there are no sessions',
  OPENAPI_SPEC: '/spec serves the OpenAPI document',
  APP_ID: 'log lines contain the plugin name',
  INDEXER_IDM_USER: 'credentials are set per broker',
  INDEXER_IDM_PASS: 'credentials are set per broker',
  PATTERN_IDM_USER: 'the pattern extractor reads this gateway itself, without credentials',
  PATTERN_IDM_PASS: 'the pattern extractor reads this gateway itself, without credentials',
  PYTHON_RPC_SOCKET: 'models are evaluated in this process',
  SELVEDGE_PATTERNS_MONGO_HOST: 'the pattern extractor has a file of its own',
  SELVEDGE_PATTERNS_MONGO_DB: 'the pattern extractor has a file of its own',
  SELVEDGE_PATTERNS_MONGO_USER: 'the pattern extractor has a file of its own',
  SELVEDGE_PATTERNS_MONGO_PASSWORD: 'the pattern extractor has a file of its own',
  SELVEDGE_PATTERNS_BROKER_HOST: 'the pattern extractor reads this gateway only',
  SELVEDGE_PATTERNS_IDM_HOST: 'the pattern extractor reads this gateway itself, without credentials',
  SELVEDGE_PATTERNS_CPM_HOST: 'requests need the token of the gateway',
  SELVEDGE_PATTERNS_ENABLE_AUTH: 'requests need the token of the gateway, unless it listens on loopback only',
}

/**
 * Variables that several original components read with different meanings, so that the name is ambiguous.
 * Listed are the components that could use them here.
 */
export const ambiguousVariables: Readonly<Record<string, readonly ForeignComponent[]>> = {
  PORT: ['ranking', 'indexing', 'patterns'],
  BROKER_HOST: ['patterns'],
  IDM_HOST: ['patterns'],
  CPM_HOST: ['patterns'],
  ENABLE_AUTH: ['patterns'],
  MONGO_HOST: ['patterns'],
  MONGO_DB: ['patterns'],
  MONGO_USER: ['patterns'],
  MONGO_PASSWORD: ['patterns'],
}
