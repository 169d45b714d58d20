/**
 * Structured log lines, one JSON object each. The set of event names is closed, so that an operator can
 * search for them and a test can list them. No line contains a secret.
 */

export const logEvents = {
  'gateway.starting': 'The process starts; version and data folder.',
  'gateway.ready': 'All listeners are open and the log has been replayed.',
  'gateway.stopping': 'The process received a stop signal.',
  'gateway.stopped': 'All listeners and files are closed.',
  'gateway.fault': 'An unexpected internal error.',
  'gateway.internal-error': 'A request failed because of an internal error; the response contains the id.',
  'clock.unsynced':
    'The system clock is not trusted; the gateway uses monotonic time and corrects its stamps later.',
  'clock.coarse': 'The system clock is trusted, although no time source is known to have set it.',
  'clock.synced': 'A time source set the system clock.',
  'clock.jumped': 'The system clock jumped.',
  'clock.settled':
    'Times stamped while the clock was unsynced were corrected, or kept if no correction is known.',
  'config.warning': 'Settings are valid but probably not what was intended.',
  'config.absent-part': 'A setting names a component that this version does not contain.',
  'store.opened': 'A tenant database was opened.',
  'store.migrated': 'The data format was migrated.',
  'store.commit-failed': 'A group could not be written and is retried work by work.',
  'store.replayed': 'Unfolded log rows were replayed.',
  'history.evicted': 'History was removed by size or age: how many instances, and up to which time.',
  'history.no-room': 'A tenant exceeds history.maxBytes and has no history left to remove.',
  'store.full': 'The disk is full; writes are rejected until there is room.',
  'backup.made': 'A backup was written, and verified if backup verification is set.',
  'backup.unusable': 'A backup does not match its manifest; an older one is used.',
  'store.damaged': 'A database was found damaged while it was open.',
  'store.restored':
    'A damaged database was set aside and replaced by a backup; the facts list what is missing.',
  'store.log-cut': 'The end of a write-ahead log is lost; the facts list what is missing.',
  'store.refused': 'A tenant stays closed because its database cannot be used.',
  'backup.failed': 'A backup failed; the last good one is kept.',
  'store.unwritable': 'The disk fails; writes are rejected until it recovers.',
  'disk.tight': 'Room on the disk or in the quota is short; backups, snapshots and history are deleted.',
  'disk.full': 'There is no room; writes are rejected, deletions are accepted.',
  'disk.room': 'There is room again.',
  'disk.shed': 'Data was deleted to free disk space.',
  'disk.reserve-released': 'The reserve file was deleted so that deletions can be written.',
  'disk.reserve-made': 'The reserve file was created again.',
  'http.listening': 'An HTTP listener is open.',
  'connection.stalled':
    'Clients that did not read their responses were disconnected: how many, and the bytes unsent.',
  'connection.refused':
    'More HTTP clients connected than file descriptors and limits allow; excess connections were closed.',
  'mqtt.listening': 'The MQTT listener is open.',
  'mqtt.client-error': 'A client violated the protocol or was refused.',
  'mqtt.session-evicted': 'Messages of a disconnected session were dropped at a ceiling.',
  'mqtt.session-ended': 'A session expired.',
  'mqtt.retained-refused': 'A retained message was not stored because a ceiling was reached.',
  'mqtt.frame-refused': 'A frame can never be stored; it was acknowledged and dropped.',
  'mqtt.passwords-unreadable': 'The changed password file cannot be read; the last good one stays in use.',
  'mqtt.held': 'The disk rejects commits; publishers wait.',
  'bridge-in.connected': 'Connected to an external broker.',
  'bridge-in.lost': 'The connection to an external broker was lost.',
  'bridge-in.refused': 'An external broker refused the connection or a subscription.',
  'intake.quarantined':
    'A frame was quarantined: reason and topic. At most one line a second is logged during a flood; it counts the others.',
  'intake.released':
    'Held frames were decoded and stored, because their format can now be read or their device was accepted.',
  'intake.unclaimed':
    'A topic that no bridge reads was seen for the first time; readableBy names a bridge that could read it. At most one line a second is logged during a flood; untold counts the others.',
  'intake.chosen': 'An operator accepted or ignored a device or a topic, or withdrew that decision.',
  'intake.mapping-unusable':
    'A topic cannot be read with the mapping that an operator chose; it is unclaimed.',
  'intake.provisioned': 'A device was seen for the first time.',
  'snapshot.untold': 'The endpoint of a snapshot could not be notified.',
  'delivery.endpoint-down': 'An endpoint stopped responding.',
  'delivery.endpoint-up': 'An endpoint responds again.',
  'delivery.period-failed':
    'A periodic notification could not be created; the next one is due after one period.',
  'delivery.dead': 'A notification became a dead letter.',
  'subscription.left-behind':
    'A context source that was unreachable for long still holds a subscription that ended here.',
  'subscription.not-passed-on': 'A subscription could not be forwarded to a context source; this is retried.',
  'subscription.refused': 'A context source refused a forwarded subscription.',
  'entity.two-origins': 'Two gateways write the same attribute of an entity here; logged once per pair.',
  'uplink.collision':
    'Another gateway writes the same attributes at the centre: one device may be connected at two sites.',
  'uplink.catching-up': 'An uplink is behind: it sends current values first, then the history.',
  'uplink.evicted':
    'History was not sent because of the budget of an uplink or of the history; it was reported as gaps.',
  'uplink.over-budget':
    'The backlog of an uplink exceeds its budget: part of it will be dropped and reported as gaps.',
  'uplink.undeclared':
    'An uplink of the settings cannot start, for example because its context is unavailable.',
  'uplink.down': 'The central broker of an uplink is unreachable or accepts nothing.',
  'uplink.up': 'The central broker of an uplink accepts changes again.',
  'uplink.history-down':
    'The central broker of an uplink rejects histories; current values are sent, and history waits.',
  'uplink.history-up': 'The central broker of an uplink accepts histories again.',
  'uplink.reconciled': 'An uplink compared its entities with those of the central broker.',
  'uplink.reconcile-cancelled': 'An operator cancelled a comparison.',
  'uplink.centre-restored':
    'The central broker of an uplink holds less than before; the uplink searches what is missing.',
  'uplink.refused': 'The central broker of an uplink rejected a change for good.',
  'uplink.refused-let-go': 'The queue of refused changes of an uplink was full; the oldest was dropped.',
  'registration.made': 'This gateway was registered at another broker as a context source.',
  'registration.failed': 'A registration at another broker could not be created or renewed; this is retried.',
  'tunnel.up': 'A tunnel is open: from a gateway to this one, or from this one to a centre.',
  'tunnel.down': 'A tunnel was closed, or cannot be opened.',
  'tunnel.refused':
    'A gateway connected with a name reserved for another one and was refused; `selvedge tunnels` releases a name.',
  'tunnel.displaced': 'Another connection with our name replaced our tunnel.',
  'tunnel.taken-over':
    'Another process with the same name replaced a tunnel; two gateways may share one identity.',
  'copies.loaded': 'Copies of entities of another broker were loaded for the first time since the start.',
  'copies.failed': 'Copies cannot be loaded from another broker; the last good ones are kept.',
  'copies.refused': 'Data of another broker was rejected because it is not a valid entity here.',
  'copies.stream-ended': 'Another broker stopped sending changes; its copies are loaded again.',
  'downward.undone': 'Objects at another broker that the settings no longer require were deleted.',
  'downward.not-undone': 'Such an object could not be deleted; this is retried.',
  'plugin.started': 'A plugin is running.',
  'plugin.failed':
    'An operation of a plugin failed or takes too long; its field `during` names the operation.',
  'plugin.disabled': 'A plugin failed too often, or could not start; it is disabled until the next start.',
  'search.schema-mistake': 'A file of search.schemaFolder has a mistake and is ignored.',
  'plugin.no-listener': 'The port of a plugin cannot be opened.',
  'plugin.file-renewed':
    'The file of a plugin was damaged; it was set aside, and its content is derived again.',
  'indexing.read': 'All entities of a broker were read into the index.',
  'indexing.disk': 'The index cannot be written because of its disk; this is retried.',
  'indexing.subscription-gone': 'A subscription of the index was missing and is created again.',
  'indexing.broker-down': 'A registered broker is unreachable or unusable; its entries are marked as stale.',
  'indexing.broker-silent':
    'A registered broker responds but cannot notify this gateway; see indexing.callbackUrl.',
  'indexing.broker-up': 'A registered broker is reachable again and is read again.',
  'indexing.broker-learnt': 'A broker that a context source registration names is now indexed.',
  'indexing.subscription-left': 'A subscription of the index remains at a broker that was removed.',
  'context.fetched': 'A user @context was fetched and cached.',
  'context.unavailable': 'A user @context could not be fetched; a cached copy is used if there is one.',
  'access.token-created': 'A new HTTP token was written to the data folder.',
} as const satisfies Record<string, string>

export type LogEvent = keyof typeof logEvents
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface Log {
  debug(event: LogEvent, facts?: Record<string, unknown>): void
  info(event: LogEvent, facts?: Record<string, unknown>): void
  warn(event: LogEvent, facts?: Record<string, unknown>): void
  error(event: LogEvent, facts?: Record<string, unknown>): void
}

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

/** Creates a log that passes complete lines to `write`; a line below `level` costs one comparison. */
export function createLog(options: {
  level: LogLevel
  clock: { now(): number }
  write: (line: string) => void
}): Log {
  const least = ranks[options.level]
  const line = (level: LogLevel, event: LogEvent, facts: Record<string, unknown> = {}): void => {
    if (ranks[level] < least) return
    const at = new Date(options.clock.now()).toISOString()
    options.write(`${JSON.stringify({ at, level, event, ...facts }, plain)}\n`)
  }
  return {
    debug: (event, facts) => line('debug', event, facts),
    info: (event, facts) => line('info', event, facts),
    warn: (event, facts) => line('warn', event, facts),
    error: (event, facts) => line('error', event, facts),
  }
}

function plain(_key: string, value: unknown): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message, stack: value.stack }
  return typeof value === 'bigint' ? String(value) : value
}
