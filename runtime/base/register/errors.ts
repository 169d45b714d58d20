/**
 * The error register: every code the gateway can raise, whose fault it is, whether a retry can help,
 * and what a person can do about it. One class carries all of them; narrowing is by `code`.
 * `new Error` appears nowhere else in the product.
 */

/** Who has to act: the caller of an API, a device, a peer system, the machine's resources, or we. */
export type Fault = 'caller' | 'device' | 'peer' | 'resource' | 'ourselves'

/** Whether the same request may succeed when repeated: never, after a while, or at once. */
export type Retry = 'never' | 'later' | 'now'

export interface ErrorEntry {
  readonly fault: Fault
  readonly retry: Retry
  /** HTTP status when the error leaves by HTTP. */
  readonly status: number
  readonly hint: string
}

const entry = (fault: Fault, retry: Retry, status: number, hint: string): ErrorEntry => ({
  fault,
  retry,
  status,
  hint,
})

export const errorRegister = {
  // NGSI-LD API errors (GS CIM 009, 5.5.2 and 6.3.2)
  'ngsi-ld.invalid-request': entry('caller', 'never', 400, 'Correct the request named in the detail.'),
  'ngsi-ld.bad-request-data': entry('caller', 'never', 400, 'Correct the member named in the detail.'),
  'ngsi-ld.already-exists': entry('caller', 'never', 409, 'Update the existing one, or use another id.'),
  'ngsi-ld.conflict': entry(
    'caller',
    'never',
    409,
    'Somebody else is responsible for this; see the registrations of context sources.',
  ),
  'ngsi-ld.not-found': entry('caller', 'never', 404, 'Check the id and the tenant.'),
  'ngsi-ld.not-supported': entry('caller', 'never', 422, 'See docs/compat.md for what is built.'),
  'ngsi-ld.too-complex': entry('caller', 'never', 403, 'Shorten or split the query.'),
  'ngsi-ld.too-many-names': entry(
    'caller',
    'never',
    403,
    'Put what differs from entity to entity into values, not into names of attributes and types.',
  ),
  'ngsi-ld.too-many-results': entry('caller', 'never', 403, 'Ask for a smaller page.'),
  'ngsi-ld.context-not-available': entry(
    'peer',
    'later',
    504,
    'The @context document could not be fetched and no copy is kept.',
  ),
  'ngsi-ld.nonexistent-tenant': entry('caller', 'never', 404, 'A tenant appears with its first create.'),
  // HTTP binding
  'http.method-not-allowed': entry('caller', 'never', 405, 'See the Allow header.'),
  'http.not-acceptable': entry('caller', 'never', 406, 'Ask for one of the listed media types.'),
  'http.length-required': entry(
    'caller',
    'never',
    411,
    'Send Content-Length; NGSI-LD takes no chunks without it.',
  ),
  'http.unsupported-media-type': entry(
    'caller',
    'never',
    415,
    'Send application/json or application/ld+json.',
  ),
  'http.precondition-failed': entry(
    'caller',
    'never',
    412,
    'Read the entity again and repeat with its ETag.',
  ),
  'http.body-too-large': entry('caller', 'never', 413, 'Split the request.'),
  'http.busy': entry('resource', 'later', 503, 'Repeat after the Retry-After time.'),
  'http.unauthorized': entry('caller', 'never', 401, 'Send the token of the data folder as Bearer token.'),
  'tunnel.name-taken': entry(
    'caller',
    'never',
    403,
    'Another gateway has this name. If it is the same gateway with a new data folder, release the name at the centre: selvedge tunnels release NAME.',
  ),
  'http.forbidden': entry('caller', 'never', 403, 'The gateway behind the tunnel decides what it allows.'),
  'http.foreign-origin': entry(
    'caller',
    'never',
    403,
    'Send the request from a page of this gateway, or name the host of the page in http.allowedHosts; search.cors lets pages of all origins use GraphQL.',
  ),
  'http.foreign-host': entry(
    'caller',
    'never',
    421,
    'Address the gateway as localhost or 127.0.0.1, or name the host in http.allowedHosts.',
  ),
  'http.no-route': entry('caller', 'never', 404, 'See docs/reference/api.md for the paths there are.'),
  // Store
  'store.busy': entry(
    'resource',
    'later',
    503,
    'The write queue is full; repeat after the Retry-After time.',
  ),
  'store.full': entry('resource', 'later', 507, 'The disk or the quota is full; free space.'),
  'store.unwritable': entry(
    'resource',
    'later',
    503,
    'The disk fails; look at it. What is refused now can be repeated.',
  ),
  'store.failed': entry('resource', 'later', 500, 'Look at the disk, and at who may write there.'),
  'store.not-empty': entry(
    'caller',
    'never',
    500,
    'Name an empty folder by --data, or move away what is in this one.',
  ),
  'store.locked': entry('caller', 'never', 500, 'Stop the other one, or give this one a folder of its own.'),
  'store.newer': entry(
    'caller',
    'never',
    500,
    'The data folder was written by a newer version; install that.',
  ),
  'store.corrupt': entry('resource', 'never', 500, 'The database is damaged; restore a backup.'),
  'store.closed': entry('ourselves', 'later', 503, 'The gateway is stopping.'),
  // Intake
  'intake.undecodable': entry('device', 'never', 400, 'Decode the payload by `selvedge decode` to see why.'),
  'intake.unclaimed': entry('device', 'never', 404, 'Declare a bridge for this topic.'),
  // Settings and command line
  'config.invalid': entry(
    'caller',
    'never',
    500,
    'Correct what is named; `selvedge check` shows every mistake in settings and files.',
  ),
  'config.no-permission': entry(
    'caller',
    'never',
    500,
    'Run the command as the user of the gateway, or with sudo.',
  ),
  'cli.no-answer': entry(
    'peer',
    'later',
    502,
    'Is the gateway running? If it is, check the address and the network.',
  ),
  'cli.no-gateway': entry(
    'caller',
    'never',
    400,
    'Name the address of a gateway by --url, such as http://host:9090.',
  ),
  'cli.no-token': entry('caller', 'never', 401, 'Name the file that holds its token by --token-file.'),
  'cli.child': entry('resource', 'later', 500, 'Its last lines say why.'),
  'cli.usage': entry('caller', 'never', 400, 'See `selvedge --help`.'),
  // MQTT
  'mqtt.ceiling': entry('caller', 'later', 503, 'A ceiling of docs/reference/limits is reached.'),
  // Delivery
  'peer.unavailable': entry('peer', 'later', 502, 'Check the address and the network.'),
  'peer.refused': entry('peer', 'never', 502, 'The detail is what the other side said.'),
  'peer.timeout': entry(
    'peer',
    'later',
    504,
    'Look at the context source; its registration may give more time.',
  ),
  'peer.loop': entry(
    'peer',
    'never',
    508,
    'Registrations lead back here: give one of them management.localOnly, or delete it.',
  ),
  'peer.loopback': entry(
    'caller',
    'never',
    400,
    'Targets on this machine are refused while others may connect; see `outbound.allowLoopback`.',
  ),
  // Process
  'gateway.address-unavailable': entry(
    'resource',
    'later',
    500,
    'Another process listens there, or the address is not of this machine.',
  ),
  // Anything that is a bug of ours
  // Plugins
  'indexing.no-history': entry('caller', 'never', 501, 'Ask the broker itself; the index has no histories.'),
  'plugin.unavailable': entry(
    'ourselves',
    'later',
    503,
    'The component starts, or failed; /health/ready and the log say why.',
  ),
  'gateway.internal': entry('ourselves', 'later', 500, 'Report the id; it is in the log.'),
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorRegister

/** The one error class. `details` are facts for the reader, never secrets. */
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

/** Anything thrown, as a GatewayError; what is not one of ours becomes `gateway.internal`. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new GatewayError('gateway.internal', message, {}, error)
}

/** An invariant of ours. A false one is a bug: it stops the request, and the log names it. */
export function assert(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new GatewayError('gateway.internal', `invariant broken: ${invariant}`)
}
