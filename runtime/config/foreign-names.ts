/**
 * Names that are not ours to choose: sections of parts that are planned and not built, environment variables of
 * the interface specification and of the components it describes. A part that gets built takes its section and its
 * variables out of these tables and into the schema.
 */

/** Sections of the settings whose part this version does not have; accepted whole, and reported. */
export const absentSections = {
  orchestrator: 'orchestrator',
  ranking: 'ranking',
  indexing: 'indexing',
  search: 'search enabler',
  quality: 'quality analyser',
  patterns: 'pattern extractor',
  faults: 'fault detection',
  virtualSensors: 'virtual sensor creator',
  identity: 'identity manager',
} as const satisfies Record<string, string>

export type AbsentSection = keyof typeof absentSections

/** Variables that belong to one part, or mean the same in each of several. */
export const foreignVariables: Readonly<Record<string, readonly AbsentSection[]>> = {
  PLATFORM_AMQP_HOST: ['orchestrator'],
  IOTCRAWLER_RABBIT_HOST: ['orchestrator'],
  PLATFORM_CACHE_HOST: ['orchestrator'],
  IOTCRAWLER_REDIS_HOST: ['orchestrator'],
  NGSILD_BROKER_URL: ['orchestrator'],
  HTTP_SERVER_PORT: ['orchestrator'],
  HTTP_SERVER_HOST: ['orchestrator'],
  HTTP_REFERENCE_URL: ['orchestrator'],
  RANKING_COMPONENT_URL: ['orchestrator'],
  CUT_TYPE_URIS: ['orchestrator', 'search'],
  VERSION: ['orchestrator', 'search'],
  PLATFORM_ORCHESTRATOR_URL: ['search'],
  IOTCRAWLER_ORCHESTRATOR_URL: ['search'],
  GRAPHQL_ENDPOINT_URL: ['search'],
  TRACK_EXECUTION_TIMES: ['search'],
  INDEXER_URL: ['ranking'],
  LOG_LEVEL: ['ranking'],
  REQUEST_LIMIT: ['ranking'],
  SESSION_SECRET: ['ranking'],
  OPENAPI_SPEC: ['ranking'],
  APP_ID: ['ranking'],
  INDEXER_HOST: ['indexing'],
  INDEXER_IDM_USER: ['indexing'],
  INDEXER_IDM_PASS: ['indexing'],
  NGSI_ADDRESS: ['quality', 'faults'],
  SE_HOST: ['quality'],
  SE_PORT: ['quality'],
  SE_CALLBACK: ['quality'],
  PATTERN_HOST: ['patterns'],
  PATTERN_IDM_USER: ['patterns'],
  PATTERN_IDM_PASS: ['patterns'],
  PYTHON_RPC_SOCKET: ['patterns'],
  ENABLE_BATCH_OPERATIONS: ['patterns'],
  FD_HOST: ['faults'],
  FD_PORT: ['faults'],
  FD_CALLBACK: ['faults'],
  VS_CREATER_ADDRESS: ['faults'],
  RECOVERY_METHOD: ['faults'],
  BROKER_ADDRESS: ['virtualSensors'],
  CALLBACK_ADDRESS: ['virtualSensors'],
}

/** Variables that several originals read, each with a meaning of its own: the bare name says too little. */
export const ambiguousVariables: Readonly<Record<string, readonly AbsentSection[]>> = {
  PORT: ['ranking', 'indexing', 'patterns'],
  BROKER_HOST: ['indexing', 'patterns'],
  IDM_HOST: ['indexing', 'patterns'],
  CPM_HOST: ['indexing', 'patterns'],
  ENABLE_AUTH: ['indexing', 'patterns'],
  MONGO_HOST: ['indexing', 'patterns'],
  MONGO_DB: ['indexing', 'patterns'],
  MONGO_USER: ['indexing', 'patterns'],
  MONGO_PASSWORD: ['indexing', 'patterns'],
}
