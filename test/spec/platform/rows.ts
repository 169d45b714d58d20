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
  /** A variable that is accepted and reported as belonging to an absent component. */
  | { readonly variable: string }

interface BuiltRow {
  readonly component: string
  /** A summary of the specification. */
  readonly says: string
}

interface AbsentRow extends BuiltRow {
  readonly absent: Absence
}

const built = (says: string, component = 'metadata repository'): BuiltRow => ({ component, says })
const absent = (component: string, says: string, absence: Absence): AbsentRow => ({
  component,
  says,
  absent: absence,
})
const route = (method: string, path: string): Absence => ({ route: [method, path] })
const variable = (component: string, name: string, says: string): AbsentRow =>
  absent(component, `${name}: ${says}`, { variable: name })

const orchestrator = 'orchestrator'
const quality = 'quality analyser'
const creator = 'virtual sensor creator'
const faults = 'fault detection'
const identity = 'identity manager'
const replace = '/api/replaceBrokenSensor/'
const deploy = '/api/deployVirtualSensor/'

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
    orchestratorNgsi: absent(
      orchestrator,
      'any NGSI-LD method, redirected to the MDR and tracked',
      route('GET', '/orchestrator/ngsi-ld/v1/entities'),
    ),
    orchestratorNotify: absent(
      orchestrator,
      'POST /notify takes notifications for AMQP',
      route('POST', '/notify'),
    ),
    orchestratorRoot: absent(orchestrator, 'GET / answers', route('GET', '/orchestrator/')),
    orchestratorVersion: absent(
      orchestrator,
      'GET /version gives the version label',
      route('GET', '/version'),
    ),
    ranking: built('GET /ngsi-ld/v1/entities?type=&weights= gives a ranked array', 'ranking'),
    indexing: built('the NGSI-LD query interface over registered brokers', 'indexing'),
    search: built('GraphQL by POST, and an IDE at its root', 'search enabler'),
    stopFaults: built('GET /api/stopFaultDetection with sensorID', faults),
    restartFaults: built('GET /api/restartFaultDetection with sensorID', faults),
    replaceBroken: absent(creator, `GET ${replace} with sensorID`, route('GET', replace)),
    deploy: absent(creator, `GET ${deploy} with location and propertyID`, route('GET', deploy)),
    stopVirtual: absent(
      creator,
      'GET /api/stopVirtualSensor with sensorID',
      route('GET', '/api/stopVirtualSensor'),
    ),
    listVirtual: absent(creator, 'GET /api/list gives all virtual sensors by id', route('GET', '/api/list')),
    statusVirtual: absent(creator, 'GET /api/status shows that it runs', route('GET', '/api/status')),
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
    noVirtual: absent(
      creator,
      'stopVirtualSensor of an unknown sensor: an error envelope',
      route('GET', '/api/stopVirtualSensor'),
    ),
    anyVirtual: absent(creator, 'any failure: an error envelope with the reason', route('GET', '/api/list')),
  },
  Events: {
    notification: built('the MDR notifies a subscriber of an entity that was created or changed and matches'),
    queued: absent(
      orchestrator,
      'a notification goes to an AMQP exchange named as the subscription',
      route('POST', '/notify'),
    ),
    streamFailed: absent(orchestrator, 'the failure of a subscribed stream is reported with alternatives', {
      subscription: 'notify',
    }),
    indexed: built('registering a broker makes subscriptions there', 'indexing'),
    qualitySubscribes: built('it subscribes to IoTStreams at its start', quality),
    qualityStored: built('a QoI entity is stored and linked', quality),
    pattern: built('an Event entity is published', 'pattern extractor'),
    fault: built('the MDR is notified of a fault', faults),
    virtualObservation: absent(
      creator,
      'a StreamObservation is published every updateInterval',
      route('GET', '/virtual-sensors/api/list'),
    ),
    virtualSubscribes: absent(creator, 'it subscribes to contributing StreamObservations', {
      subscription: 'virtual',
    }),
  },
  States: {
    virtualDeployed: absent(
      creator,
      'none to deployed by replaceBrokenSensor or deployVirtualSensor',
      route('GET', replace),
    ),
    virtualStopped: absent(
      creator,
      'deployed to stopped by stopVirtualSensor; its entities are deleted',
      route('GET', '/api/stopVirtualSensor'),
    ),
    virtualNone: absent(
      creator,
      'none stays none when an unknown sensor is stopped',
      route('GET', '/virtual-sensors/api/stopVirtualSensor'),
    ),
    faultsStopped: built('running to stopped, by hand only', faults),
    faultsRunning: built('running or stopped to running by restartFaultDetection', faults),
    anomalyFault: absent(faults, 'an anomaly that lasts becomes a fault, with counter-measures', {
      subscription: 'faults',
    }),
    definiteFault: built('a definite fault is reported to the MDR', faults),
    tokenExpired: absent(
      identity,
      'a valid token becomes invalid when it expires',
      route('GET', '/v1/auth/tokens'),
    ),
  },
  Limits: {
    maxDistance: absent(creator, 'maxDistance: 20 km unless given', route('GET', replace)),
    limitSourceSensors: absent(creator, 'limitSourceSensors: 8 unless given', route('GET', replace)),
    onlySameObservations: absent(creator, 'onlySameObservations: true unless given', route('GET', deploy)),
    updateInterval: absent(creator, 'updateInterval: seconds, chosen by the caller', route('GET', deploy)),
    weights: built('weights should add up to 1', 'ranking'),
    shards: built('sharding takes four database instances: here one file is enough', 'indexing'),
  },
  Configuration: {
    amqpHost: variable(orchestrator, 'PLATFORM_AMQP_HOST', 'the AMQP server'),
    cacheHost: variable(orchestrator, 'PLATFORM_CACHE_HOST', 'the cache of running subscriptions'),
    brokerUrl: variable(orchestrator, 'NGSILD_BROKER_URL', 'the MDR'),
    serverPort: variable(orchestrator, 'HTTP_SERVER_PORT', 'where it listens'),
    referenceUrl: variable(orchestrator, 'HTTP_REFERENCE_URL', 'where notifications are sent'),
    version: built('VERSION: the debug label', 'search enabler'),
    orchestratorUrl: built(
      'PLATFORM_ORCHESTRATOR_URL: the NGSI-LD endpoint that it queries',
      'search enabler',
    ),
    ngsiAddress: built('NGSI_ADDRESS: the MDR', quality),
    seHost: built('SE_HOST: the address it binds to', quality),
    sePort: built('SE_PORT: the port it listens on', quality),
    seCallback: built('SE_CALLBACK: the callback in its subscriptions', quality),
    brokerAddress: variable(creator, 'BROKER_ADDRESS', 'the MDR as host and port'),
    callbackAddress: variable(creator, 'CALLBACK_ADDRESS', 'its own address'),
  },
} as const satisfies Record<string, Record<string, BuiltRow>>

export type Table = keyof typeof rows

/** Keys of the implemented rows of a table. */
export type BuiltKey<T extends Table> = {
  [K in keyof (typeof rows)[T]]: (typeof rows)[T][K] extends { absent: Absence } ? never : K
}[keyof (typeof rows)[T]]

export interface NamedRow {
  readonly key: string
  /** Title of the test. */
  readonly name: string
  readonly component: string
  /** Undefined if the row is implemented. */
  readonly absent: Absence | undefined
}

export function rowsOf(table: Table): NamedRow[] {
  const all: Readonly<Record<string, BuiltRow & Partial<AbsentRow>>> = rows[table]
  return Object.entries(all).map(([key, { component, says, absent: absence }]) => ({
    key,
    name: `${component}: ${says}`,
    component,
    absent: absence,
  }))
}
