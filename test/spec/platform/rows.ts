/**
 * All rows of the tables Endpoints, Errors, Events, States, Limits and Configuration in the platform's
 * interface specification. A test proves each implemented row. For other rows a test proves that the feature
 * is absent, as the row describes. Implementing a component changes its rows.
 */

/** Evidence of absence. */
export type Absence =
  /** The main listener has no such route. */
  | { readonly route: readonly [method: string, path: string] }
  /** No component has subscribed. */
  | { readonly subscription: string }
  /** No entity of this type is created. */
  | { readonly type: string }
  /** A query parameter that is rejected. */
  | { readonly parameter: string }

interface BuiltRow {
  readonly component: string
  /** A summary of the specification. */
  readonly says: string
}

interface TestedRow extends BuiltRow {
  readonly test: readonly [file: string, title: string]
}

interface AbsentRow extends BuiltRow {
  readonly absent: Absence
}

const built = (says: string, component = 'metadata repository'): BuiltRow => ({ component, says })
/** A row that the tests of its component prove. */
const tested = (component: string, says: string, test: TestedRow['test']): TestedRow => ({
  component,
  says,
  test,
})
const absent = (component: string, says: string, absence: Absence): AbsentRow => ({
  component,
  says,
  absent: absence,
})
const route = (method: string, path: string): Absence => ({ route: [method, path] })

const orchestrator = 'orchestrator'
const quality = 'quality analyser'
const creator = 'virtual sensor creator'
const faults = 'fault detection'
const identity = 'identity manager'
const replacement = 'test/spec/virtual-sensors/replacement.test.ts'
const requests = 'test/spec/virtual-sensors/requests.test.ts'
const parameters = 'plugins/virtual-sensors/requests/parameters.test.ts'
const replaced = [replacement, 'is replaced: the description comes at once, predictions follow'] as const
const stopped = [replacement, 'loses its replacement with all entities and subscriptions'] as const
const unknown = [requests, '%s with an id that does not exist is answered with 404'] as const
const proxied = [
  'test/spec/orchestrator/proxy.test.ts',
  'forwards every method with status and headers',
] as const
const labelled = ['test/spec/orchestrator/proxy.test.ts', 'answers its root and its version'] as const
const variables = [
  'runtime/config/load/load.test.ts',
  'take the variables of the original orchestrator',
] as const
const remote = ['test/spec/virtual-sensors/remote.test.ts', 'publishes at the remote broker'] as const

export const rows = {
  Endpoints: {
    create: built(
      'POST /ngsi-ld/v1/entities/ takes a JSON-LD entity: 201; 400 if it is no NGSI-LD, 409 if it exists',
    ),
    query: built('GET /ngsi-ld/v1/entities?type= takes a full IRI or another type code: 200, JSON-LD array'),
    retrieve: built('GET /ngsi-ld/v1/entities/{id} gives the entity as JSON-LD: 200, 404'),
    update: built(
      'PATCH /ngsi-ld/v1/entities/{id}/attrs takes @context and attributes, no id, no type: 204, 404',
    ),
    append: built('POST /ngsi-ld/v1/entities/{id}/attrs/ takes the entity without id and type after a 409'),
    delete: built('DELETE /ngsi-ld/v1/entities/{id}: 204, 404'),
    orchestratorNgsi: tested(orchestrator, 'any NGSI-LD method, redirected to the MDR and tracked', proxied),
    orchestratorNotify: tested(orchestrator, 'POST /notify takes notifications for AMQP', [
      'test/spec/orchestrator/subscriptions.test.ts',
      'acknowledges a notification that is stored, and explains what it rejects',
    ]),
    orchestratorRoot: tested(orchestrator, 'GET / answers', labelled),
    orchestratorVersion: tested(orchestrator, 'GET /version gives the version label', labelled),
    ranking: built('GET /ngsi-ld/v1/entities?type=&weights= gives a ranked array', 'ranking'),
    indexing: built('the NGSI-LD query interface over registered brokers', 'indexing'),
    search: built('GraphQL by POST, and an IDE at its root', 'search enabler'),
    stopFaults: built('GET /api/stopFaultDetection with sensorID', faults),
    restartFaults: built('GET /api/restartFaultDetection with sensorID', faults),
    replaceBroken: tested(creator, 'GET /api/replaceBrokenSensor/ with sensorID', replaced),
    deploy: tested(creator, 'GET /api/deployVirtualSensor/ with location and propertyID', [
      requests,
      'gets a virtual sensor from its neighbours',
    ]),
    stopVirtual: tested(creator, 'GET /api/stopVirtualSensor with sensorID', stopped),
    listVirtual: tested(creator, 'GET /api/list gives all virtual sensors by id', [
      requests,
      'is answered on the port of the search enabler and on a port of its own',
    ]),
    statusVirtual: tested(creator, 'GET /api/status shows that it runs', [
      requests,
      'is answered on the port of the search enabler and on a port of its own',
    ]),
    qualityCallback: built('a callback that takes notifications', quality),
    makeToken: absent(
      identity,
      'POST /v1/auth/tokens: 201, the token in X-Subject-Token',
      route('POST', '/v1/auth/tokens'),
    ),
    showToken: absent(identity, 'GET /v1/auth/tokens describes a token', route('GET', '/v1/auth/tokens')),
  },
  Errors: {
    notNgsi: built('POST /ngsi-ld/v1/entities/ with a body that is no NGSI-LD: 400'),
    exists: built('POST /ngsi-ld/v1/entities/ with an id that exists: 409'),
    internal: built('POST /ngsi-ld/v1/entities/ and an internal failure: 500'),
    missing: built('GET, PATCH, DELETE of an entity that does not exist: 404'),
    token: absent(
      identity,
      'POST, GET /v1/auth/tokens with wrong credentials: 401',
      route('POST', '/v1/auth/tokens'),
    ),
    noVirtual: tested(creator, 'stopVirtualSensor of an unknown sensor: an error envelope', unknown),
    anyVirtual: tested(creator, 'any failure: an error envelope with the reason', [
      requests,
      'for the sensor %s fails: %s',
    ]),
  },
  Events: {
    notification: built('the MDR notifies a subscriber of an entity that was created or changed and matches'),
    queued: tested(orchestrator, 'a notification goes to an AMQP exchange named as the subscription', [
      'test/spec/orchestrator/amqp.test.ts',
      'serves a client of the original: the id as text, then a transient fanout exchange of that name',
    ]),
    streamFailed: absent(orchestrator, 'the failure of a subscribed stream is reported with alternatives', {
      subscription: 'notify',
    }),
    indexed: built('registering a broker makes subscriptions there', 'indexing'),
    qualitySubscribes: built('it subscribes to IoTStreams at its start', quality),
    qualityStored: built('a QoI entity is stored and linked', quality),
    pattern: built('an Event entity is published', 'pattern extractor'),
    fault: built('the MDR is notified of a fault', faults),
    virtualObservation: tested(creator, 'a StreamObservation is published every updateInterval', replaced),
    virtualSubscribes: tested(creator, 'it subscribes to contributing StreamObservations', [
      replacement,
      'has visible subscriptions to the sources',
    ]),
  },
  States: {
    virtualDeployed: tested(
      creator,
      'none to deployed by replaceBrokenSensor or deployVirtualSensor',
      replaced,
    ),
    virtualStopped: tested(
      creator,
      'deployed to stopped by stopVirtualSensor; its entities are deleted',
      stopped,
    ),
    virtualNone: tested(creator, 'none stays none when an unknown sensor is stopped', unknown),
    faultsStopped: built('running to stopped, by hand only', faults),
    faultsRunning: built('running or stopped to running by restartFaultDetection', faults),
    anomalyFault: tested(faults, 'an anomaly that lasts becomes a fault, with counter-measures', [
      'plugins/faults/detection/state-machine.test.ts',
      'makes a fault of an anomaly that persists, and not of a single alarm',
    ]),
    definiteFault: built('a definite fault is reported to the MDR', faults),
    tokenExpired: absent(
      identity,
      'a valid token becomes invalid when it expires',
      route('GET', '/v1/auth/tokens'),
    ),
  },
  Limits: {
    maxDistance: tested(creator, 'maxDistance: 20 km unless given', [
      parameters,
      'have the defaults of the specification',
    ]),
    limitSourceSensors: tested(creator, 'limitSourceSensors: 8 unless given', [
      parameters,
      'have the defaults of the specification',
    ]),
    onlySameObservations: tested(creator, 'onlySameObservations: true unless given', [
      parameters,
      'have the defaults of the specification',
    ]),
    updateInterval: tested(creator, 'updateInterval: seconds, chosen by the caller', [
      parameters,
      'have the defaults of the specification',
    ]),
    weights: built('weights should add up to 1', 'ranking'),
    shards: built('sharding takes four database instances: here one file is enough', 'indexing'),
  },
  Configuration: {
    amqpHost: tested(orchestrator, 'PLATFORM_AMQP_HOST: the AMQP server', variables),
    cacheHost: tested(orchestrator, 'PLATFORM_CACHE_HOST: the cache of running subscriptions', variables),
    brokerUrl: tested(orchestrator, 'NGSILD_BROKER_URL: the MDR', variables),
    serverPort: tested(orchestrator, 'HTTP_SERVER_PORT: where it listens', variables),
    referenceUrl: tested(orchestrator, 'HTTP_REFERENCE_URL: where notifications are sent', variables),
    version: built('VERSION: the debug label', 'search enabler'),
    orchestratorUrl: built(
      'PLATFORM_ORCHESTRATOR_URL: the NGSI-LD endpoint that it queries',
      'search enabler',
    ),
    ngsiAddress: built('NGSI_ADDRESS: the MDR', quality),
    seHost: built('SE_HOST: the address it binds to', quality),
    sePort: built('SE_PORT: the port it listens on', quality),
    seCallback: built('SE_CALLBACK: the callback in its subscriptions', quality),
    brokerAddress: tested(creator, 'BROKER_ADDRESS: the MDR as host and port', remote),
    callbackAddress: tested(creator, 'CALLBACK_ADDRESS: its own address', remote),
  },
} as const satisfies Record<string, Record<string, BuiltRow>>

export type Table = keyof typeof rows

/** Keys of the implemented rows of a table. */
export type BuiltKey<T extends Table> = {
  [K in keyof (typeof rows)[T]]: (typeof rows)[T][K] extends { absent: Absence } | TestedRow ? never : K
}[keyof (typeof rows)[T]]

export interface NamedRow {
  readonly key: string
  /** Title of the test. */
  readonly name: string
  readonly component: string
  /** Undefined if the row is implemented. */
  readonly absent: Absence | undefined
  /** The test of its component that proves it. */
  readonly test: TestedRow['test'] | undefined
}

export function rowsOf(table: Table): NamedRow[] {
  const all: Readonly<Record<string, BuiltRow & Partial<AbsentRow & TestedRow>>> = rows[table]
  return Object.entries(all).map(([key, { component, says, absent: absence, test }]) => ({
    key,
    name: `${component}: ${says}`,
    component,
    absent: absence,
    test,
  }))
}
