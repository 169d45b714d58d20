/**
 * The error register: every code the gateway can raise, whose fault it is, whether a retry can help,
 * and what a person can do about it. All errors share the class GatewayError and are distinguished by `code`.
 * The product throws no other `new Error`.
 */

/**
 * Party that has to act: the API caller, a device, a peer system, the machine's operator, or the developers.
 */
export type Fault = 'caller' | 'device' | 'peer' | 'resource' | 'ourselves'

/** Whether repeating the same request may succeed: never, after a while, or at once. */
export type Retry = 'never' | 'later' | 'now'

export interface ErrorEntry {
  readonly fault: Fault
  readonly retry: Retry
  /** HTTP status of the response that reports the error. */
  readonly status: number
  readonly hint: string
}

/** An entry by its fault and retry, which most entries share with others. */
const entry =
  (fault: Fault, retry: Retry) =>
  (status: number, hint: string): ErrorEntry => ({ fault, retry, status, hint })
const callerNever = entry('caller', 'never')
const peerLater = entry('peer', 'later')
const resourceLater = entry('resource', 'later')
const oursLater = entry('ourselves', 'later')

export const errorRegister = {
  // NGSI-LD API errors (GS CIM 009, 5.5.2 and 6.3.2)
  'ngsi-ld.invalid-request': callerNever(400, 'Correct the request named in the detail.'),
  'ngsi-ld.bad-request-data': callerNever(400, 'Correct the member named in the detail.'),
  'ngsi-ld.already-exists': callerNever(409, 'Update the existing one, or use another id.'),
  'ngsi-ld.conflict': callerNever(
    409,
    'Another context source is responsible for this; see the context source registrations.',
  ),
  'ngsi-ld.not-found': callerNever(404, 'Check the id and the tenant.'),
  'ngsi-ld.not-supported': callerNever(422, 'See docs/compat.md for what is supported.'),
  'ngsi-ld.too-complex': callerNever(403, 'Shorten or split the query.'),
  'ngsi-ld.too-many-names': callerNever(
    403,
    'Put what differs from entity to entity into values instead of names of attributes and types.',
  ),
  'ngsi-ld.too-many-results': callerNever(403, 'Request a smaller page.'),
  'ngsi-ld.context-not-available': peerLater(
    504,
    'The @context document could not be fetched and no copy is cached.',
  ),
  'ngsi-ld.nonexistent-tenant': callerNever(404, 'The first create request creates a tenant.'),
  // HTTP binding
  'http.method-not-allowed': callerNever(405, 'See the Allow header.'),
  'http.not-acceptable': callerNever(406, 'Request one of the listed media types.'),
  'http.length-required': callerNever(411, 'Send Content-Length; chunked bodies without it are rejected.'),
  'http.unsupported-media-type': callerNever(415, 'Send application/json or application/ld+json.'),
  'http.precondition-failed': callerNever(412, 'Read the entity again and repeat with its ETag.'),
  'http.body-too-large': callerNever(413, 'Split the request.'),
  'http.busy': resourceLater(503, 'Repeat after the Retry-After time.'),
  'http.unauthorized': callerNever(401, 'Send the token of the data folder as a Bearer token.'),
  'tunnel.name-taken': callerNever(
    403,
    'Another gateway has this name. If it is the same gateway with a new data folder, release the name at the centre: selvedge tunnels release NAME.',
  ),
  'http.forbidden': callerNever(403, 'The gateway behind the tunnel decides which requests it allows.'),
  'http.foreign-origin': callerNever(
    403,
    'Send the request from a page of this gateway, or add the host of the page to http.allowedHosts; search.cors lets pages of all origins use GraphQL.',
  ),
  'http.foreign-host': callerNever(
    421,
    'Address the gateway as localhost or 127.0.0.1, or add the host to http.allowedHosts.',
  ),
  'http.no-route': callerNever(404, 'See docs/reference/api.md for the existing paths.'),
  // Store
  'store.busy': resourceLater(503, 'The write queue is full; repeat after the Retry-After time.'),
  'store.full': resourceLater(507, 'The disk or the quota is full; free space.'),
  'store.unwritable': resourceLater(503, 'The disk fails; check it. Rejected requests can be repeated.'),
  'store.failed': resourceLater(500, 'Check the disk and the permissions of the data folder.'),
  'store.not-empty': callerNever(
    500,
    'Name an empty folder by --data, or move the content of this one away.',
  ),
  'store.locked': callerNever(500, 'Stop the other process, or give this one a folder of its own.'),
  'store.newer': callerNever(500, 'A newer version wrote the data folder; install that version.'),
  'store.corrupt': entry('resource', 'never')(500, 'The database is damaged; restore a backup.'),
  'store.closed': oursLater(503, 'The gateway is stopping.'),
  // Intake
  'intake.undecodable': entry('device', 'never')(400, 'Run `selvedge decode` on the payload to see why.'),
  'intake.unclaimed': entry('device', 'never')(404, 'Declare a bridge for this topic.'),
  // Settings and command line
  'config.invalid': callerNever(
    500,
    'Correct the named setting; `selvedge check` shows every mistake in settings and files.',
  ),
  'config.no-permission': callerNever(500, 'Run the command as the user of the gateway, or with sudo.'),
  'cli.no-answer': peerLater(
    502,
    'Check that the gateway is running, then check the address and the network.',
  ),
  'cli.no-gateway': callerNever(400, 'Name the address of a gateway by --url, such as http://host:9090.'),
  'cli.no-token': callerNever(401, 'Name the file that contains its token by --token-file.'),
  'cli.child': resourceLater(500, 'The last lines of its output say why.'),
  'cli.usage': callerNever(400, 'See `selvedge --help`.'),
  // MQTT
  'mqtt.ceiling': entry('caller', 'later')(503, 'A ceiling of docs/reference/limits was reached.'),
  // Delivery
  'peer.unavailable': peerLater(502, 'Check the address and the network.'),
  'peer.refused': entry('peer', 'never')(502, 'The detail is the response of the other side.'),
  'peer.timeout': peerLater(504, 'Check the context source; its registration may set a longer timeout.'),
  'peer.loop': entry('peer', 'never')(
    508,
    'Registrations form a loop: give one of them management.localOnly, or delete it.',
  ),
  'peer.loopback': callerNever(
    400,
    'Targets on this machine are rejected while other machines may connect; see `outbound.allowLoopback`.',
  ),
  // Process
  'gateway.address-unavailable': resourceLater(
    500,
    'Another process uses the address, or the address does not belong to this machine.',
  ),
  // Plugins and internal errors
  'indexing.no-history': callerNever(
    501,
    'Send the request to the broker itself; the index has no histories.',
  ),
  'patterns.pickle': callerNever(415, 'Convert the model to JSON; see docs/guides/patterns.md.'),
  'patterns.models-full': callerNever(403, 'Delete a model that is not needed.'),
  'model.invalid': callerNever(400, 'Correct the named file; selvedge models test DIR checks a folder.'),
  'model.not-found': callerNever(404, 'See selvedge models ls for the names.'),
  'model.shipped': callerNever(
    403,
    'Shipped models are part of the program; models.assign can switch one off.',
  ),
  'model.too-many': callerNever(403, 'Remove a model that is not needed.'),
  'model.failed': entry('caller', 'never')(400, 'The detail is the error of the ONNX runtime.'),
  'inference.no-runtime': entry('resource', 'never')(
    503,
    'Models need onnxruntime-node for this board; everything else works without it.',
  ),
  'inference.ended': oursLater(503, 'The inference process ended and is started again; see the log.'),
  'virtual-sensors.failed': callerNever(422, 'The description in the response gives the reason.'),
  'inference.paused': resourceLater(503, 'The inference process ended repeatedly and pauses; see the log.'),
  'inference.busy': resourceLater(503, 'Too many calls of models are queued; repeat later.'),
  'plugin.unavailable': oursLater(503, 'The plugin is starting, or failed; see /health/ready and the log.'),
  'gateway.internal': oursLater(500, 'Report the id; it is in the log.'),
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorRegister

/** The only error class. `details` are facts for the reader and never contain secrets. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'GatewayError'
    this.code = code
    this.details = details
  }

  get entry(): ErrorEntry {
    return errorRegister[this.code]
  }
}

export function isGatewayError(error: unknown, code?: ErrorCode): error is GatewayError {
  return error instanceof GatewayError && (code === undefined || error.code === code)
}

/** Converts any thrown value to a GatewayError; other errors become `gateway.internal`. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new GatewayError('gateway.internal', message, {}, error)
}

/**
 * Checks an internal invariant. A violation is a bug: it aborts the request, and the log names the invariant.
 */
export function assert(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new GatewayError('gateway.internal', `invariant broken: ${invariant}`)
}
