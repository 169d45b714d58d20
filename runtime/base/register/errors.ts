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
    'Another context source is responsible for this; see the context source registrations.',
  ),
  'ngsi-ld.not-found': entry('caller', 'never', 404, 'Check the id and the tenant.'),
  'ngsi-ld.not-supported': entry('caller', 'never', 422, 'See docs/compat.md for what is supported.'),
  'ngsi-ld.too-complex': entry('caller', 'never', 403, 'Shorten or split the query.'),
  'ngsi-ld.too-many-names': entry(
    'caller',
    'never',
    403,
    'Put what differs from entity to entity into values instead of names of attributes and types.',
  ),
  'ngsi-ld.too-many-results': entry('caller', 'never', 403, 'Request a smaller page.'),
  'ngsi-ld.context-not-available': entry(
    'peer',
    'later',
    504,
    'The @context document could not be fetched and no copy is cached.',
  ),
  'ngsi-ld.nonexistent-tenant': entry('caller', 'never', 404, 'The first create request creates a tenant.'),
  // HTTP binding
  'http.method-not-allowed': entry('caller', 'never', 405, 'See the Allow header.'),
  'http.not-acceptable': entry('caller', 'never', 406, 'Request one of the listed media types.'),
  'http.length-required': entry(
    'caller',
    'never',
    411,
    'Send Content-Length; chunked bodies without it are rejected.',
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
  'http.unauthorized': entry('caller', 'never', 401, 'Send the token of the data folder as a Bearer token.'),
  'tunnel.name-taken': entry(
    'caller',
    'never',
    403,
    'Another gateway has this name. If it is the same gateway with a new data folder, release the name at the centre: selvedge tunnels release NAME.',
  ),
  'http.forbidden': entry(
    'caller',
    'never',
    403,
    'The gateway behind the tunnel decides which requests it allows.',
  ),
  'http.foreign-origin': entry(
    'caller',
    'never',
    403,
    'Send the request from a page of this gateway, or add the host of the page to http.allowedHosts; search.cors lets pages of all origins use GraphQL.',
  ),
  'http.foreign-host': entry(
    'caller',
    'never',
    421,
    'Address the gateway as localhost or 127.0.0.1, or add the host to http.allowedHosts.',
  ),
  'http.no-route': entry('caller', 'never', 404, 'See docs/reference/api.md for the existing paths.'),
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
    'The disk fails; check it. Rejected requests can be repeated.',
  ),
  'store.failed': entry('resource', 'later', 500, 'Check the disk and the permissions of the data folder.'),
  'store.not-empty': entry(
    'caller',
    'never',
    500,
    'Name an empty folder by --data, or move the content of this one away.',
  ),
  'store.locked': entry(
    'caller',
    'never',
    500,
    'Stop the other process, or give this one a folder of its own.',
  ),
  'store.newer': entry(
    'caller',
    'never',
    500,
    'A newer version wrote the data folder; install that version.',
  ),
  'store.corrupt': entry('resource', 'never', 500, 'The database is damaged; restore a backup.'),
  'store.closed': entry('ourselves', 'later', 503, 'The gateway is stopping.'),
  // Intake
  'intake.undecodable': entry('device', 'never', 400, 'Run `selvedge decode` on the payload to see why.'),
  'intake.unclaimed': entry('device', 'never', 404, 'Declare a bridge for this topic.'),
  // Settings and command line
  'config.invalid': entry(
    'caller',
    'never',
    500,
    'Correct the named setting; `selvedge check` shows every mistake in settings and files.',
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
    'Check that the gateway is running, then check the address and the network.',
  ),
  'cli.no-gateway': entry(
    'caller',
    'never',
    400,
    'Name the address of a gateway by --url, such as http://host:9090.',
  ),
  'cli.no-token': entry('caller', 'never', 401, 'Name the file that contains its token by --token-file.'),
  'cli.child': entry('resource', 'later', 500, 'The last lines of its output say why.'),
  'cli.usage': entry('caller', 'never', 400, 'See `selvedge --help`.'),
  // MQTT
  'mqtt.ceiling': entry('caller', 'later', 503, 'A ceiling of docs/reference/limits was reached.'),
  // Delivery
  'peer.unavailable': entry('peer', 'later', 502, 'Check the address and the network.'),
  'peer.refused': entry('peer', 'never', 502, 'The detail is the response of the other side.'),
  'peer.timeout': entry(
    'peer',
    'later',
    504,
    'Check the context source; its registration may set a longer timeout.',
  ),
  'peer.loop': entry(
    'peer',
    'never',
    508,
    'Registrations form a loop: give one of them management.localOnly, or delete it.',
  ),
  'peer.loopback': entry(
    'caller',
    'never',
    400,
    'Targets on this machine are rejected while other machines may connect; see `outbound.allowLoopback`.',
  ),
  // Process
  'gateway.address-unavailable': entry(
    'resource',
    'later',
    500,
    'Another process uses the address, or the address does not belong to this machine.',
  ),
  // Plugins and internal errors
  'indexing.no-history': entry(
    'caller',
    'never',
    501,
    'Send the request to the broker itself; the index has no histories.',
  ),
  'plugin.unavailable': entry(
    'ourselves',
    'later',
    503,
    'The plugin is starting, or failed; see /health/ready and the log.',
  ),
  'gateway.internal': entry('ourselves', 'later', 500, 'Report the id; it is in the log.'),
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
