/**
 * Names that are not ours to choose: sections of parts that are planned and not built, environment variables of
 * the interface specification and of the components it describes. A part that gets built takes its section and its
 * variables out of these tables and into the schema.
 */

/** Sections of the settings whose part this version does not have; accepted whole, and reported. */
export const absentSections = {
  orchestrator: 'orchestrator',
  quality: 'quality analyser',
  patterns: 'pattern extractor',
  faults: 'fault detection',
  virtualSensors: 'virtual sensor creator',
  identity: 'identity manager',
} as const satisfies Record<string, string>

export type AbsentSection = keyof typeof absentSections

/** What the parts are called that variables of the originals belong to. */
export const partNames = {
  ...absentSections,
  ranking: 'ranking',
  indexing: 'indexing',
  search: 'search enabler',
} as const

export type Part = keyof typeof partNames

/** Variables that belong to one part, or mean the same in each of several. */
export const foreignVariables: Readonly<Record<string, readonly Part[]>> = {
  PLATFORM_AMQP_HOST: ['orchestrator'],
  IOTCRAWLER_RABBIT_HOST: ['orchestrator'],
  PLATFORM_CACHE_HOST: ['orchestrator'],
  IOTCRAWLER_REDIS_HOST: ['orchestrator'],
  NGSILD_BROKER_URL: ['orchestrator'],
  HTTP_SERVER_PORT: ['orchestrator'],
  HTTP_SERVER_HOST: ['orchestrator'],
  HTTP_REFERENCE_URL: ['orchestrator'],
  RANKING_COMPONENT_URL: ['orchestrator'],
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

/** Variables of the originals that mean a setting of ours. */
export const aliasVariables: Readonly<Record<string, string>> = {
  PLATFORM_ORCHESTRATOR_URL: 'search.backend',
  IOTCRAWLER_ORCHESTRATOR_URL: 'search.backend',
  VERSION: 'search.version',
  INDEXER_URL: 'ranking.backend',
  INDEXER_HOST: 'indexing.callbackUrl',
}

/** Variables of parts that are built, which mean nothing here; accepted, and reported. */
export const idleVariables: Readonly<Record<string, string>> = {
  CUT_TYPE_URIS: 'GraphQL tells types as full IRIs',
  GRAPHQL_ENDPOINT_URL: 'the IDE asks the address it came from',
  TRACK_EXECUTION_TIMES: 'what an operation read, and how long that took, is in the extensions of its answer',
  LOG_LEVEL: 'there is one log, log.level',
  REQUEST_LIMIT: 'bodies have the bound of docs/reference/limits.md',
  SESSION_SECRET: 'there are no sessions',
  OPENAPI_SPEC: 'the description is at /spec',
  APP_ID: 'log lines name the plugin',
  INDEXER_IDM_USER: 'credentials belong to each broker',
  INDEXER_IDM_PASS: 'credentials belong to each broker',
}

/** Variables that several originals read, each with a meaning of its own: the bare name says too little. Named are the parts that they mean something for here. */
export const ambiguousVariables: Readonly<Record<string, readonly Part[]>> = {
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
