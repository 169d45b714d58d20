/**
 * Structured log lines, one JSON object each, with a closed set of event names, so that a reader can search
 * for them and a test can list them. Secrets never enter a line.
 */

export const logEvents = {
  'gateway.starting': 'The process begins; version and data folder.',
  'gateway.ready': 'All listeners are open and the log is replayed.',
  'gateway.stopping': 'A signal asked for the end.',
  'gateway.stopped': 'Everything is closed.',
  'gateway.fault': 'A failure that no part could handle.',
  'gateway.internal-error': 'A request failed by our fault; the id is in the answer.',
  'clock.unsynced':
    'The clock cannot be believed; it runs on by itself, and what it stamps is put right later.',
  'clock.coarse': 'The clock is believed, though nothing is known to have set it.',
  'clock.synced': 'The clock was set.',
  'clock.jumped': 'The clock of the system jumped.',
  'clock.settled':
    'Times stamped while the clock was unsynced were put right, or stand because nothing is known.',
  'config.warning': 'Settings that are legal and hardly mean what they say.',
  'config.absent-part': 'A setting names a part that this version does not have.',
  'store.opened': 'A tenant database is open.',
  'store.migrated': 'The data format was brought forward.',
  'store.commit-failed': 'A group could not be written and is retried work by work.',
  'store.replayed': 'Unfolded log rows were read back.',
  'history.evicted': 'History was removed by size or age; how many instances, and up to which time.',
  'history.no-room': 'A tenant holds more than history.maxBytes and has no history left to remove.',
  'store.full': 'The disk is full; writes are refused until there is room.',
  'backup.made': 'A backup is on disk, and was read through where that is set.',
  'backup.unusable': 'A backup is not what it says of itself; an older one is taken.',
  'store.damaged': 'A database was found damaged while it was open.',
  'store.restored': 'A damaged database was set aside and a backup took its place; what is missing now.',
  'store.log-cut': 'The end of a write-ahead log is gone; what is missing now.',
  'store.refused': 'A tenant stays closed, because its database cannot be used.',
  'backup.failed': 'No backup could be made; the last good one stays.',
  'store.unwritable': 'The disk fails; writes are refused until it takes them again.',
  'disk.tight': 'Room on the disk or in the quota gets short; backups, snapshots and history are given up.',
  'disk.full': 'There is no room; writes are refused, deleting goes on.',
  'disk.room': 'There is room again.',
  'disk.shed': 'Something was given up to make room.',
  'disk.reserve-released': 'The reserve was given up, so that there is room to delete.',
  'disk.reserve-made': 'The reserve is held again.',
  'http.listening': 'An HTTP listener is open.',
  'connection.stalled':
    'Clients did not read what was sent to them and were disconnected: how many, and what is still unsent.',
  'connection.refused':
    'More clients connected by HTTP than file descriptors and limits allow; the others were closed at once.',
  'mqtt.listening': 'The MQTT listener is open.',
  'mqtt.client-error': 'A client broke the protocol or was refused.',
  'mqtt.session-evicted': 'Messages of an absent session were dropped at a ceiling.',
  'mqtt.session-ended': 'A session ended by age.',
  'mqtt.retained-refused': 'A retained message was not kept at a ceiling.',
  'mqtt.frame-refused': 'A frame could not be stored and never will be; it was acknowledged.',
  'mqtt.passwords-unreadable': 'The changed password file cannot be read; the last good one holds.',
  'mqtt.held': 'The disk refuses commits; publishers wait.',
  'bridge-in.connected': 'Connected to an external broker.',
  'bridge-in.lost': 'Connection to an external broker lost.',
  'bridge-in.refused': 'An external broker refused the connection or a subscription.',
  'intake.quarantined':
    'A frame waits in quarantine; reason and topic. Of a flood one a second is told, and how many were not.',
  'intake.released':
    'Held frames were decoded and stored: they can be read now, or their device was accepted.',
  'intake.unclaimed':
    'A topic that no bridge reads was seen first; readableBy is the bridge that could. Of a flood one line a second is written, and untold counts the others.',
  'intake.chosen': 'An operator accepted or ignored a device or a topic, or withdrew that.',
  'intake.mapping-unusable': 'A topic that an operator mapped cannot be read as was chosen; it is unclaimed.',
  'intake.provisioned': 'A device was seen for the first time.',
  'snapshot.untold': 'The endpoint of a snapshot could not be told of it.',
  'delivery.endpoint-down': 'An endpoint stopped answering.',
  'delivery.endpoint-up': 'An endpoint answers again.',
  'delivery.period-failed': 'A periodic notification could not be made; the next period comes.',
  'delivery.dead': 'A notification was given up.',
  'subscription.left-behind': 'A context source that was away for long keeps a subscription that ended here.',
  'subscription.not-passed-on': 'A subscription could not be passed on to a context source now.',
  'subscription.refused': 'A context source refused a subscription that was passed on to it.',
  'entity.two-origins': 'Two gateways write the same attribute of an entity here; told once of each two.',
  'uplink.collision':
    'Another gateway writes at the centre what this one writes, too: one device at two sites.',
  'uplink.catching-up': 'An uplink is behind: current values go first, then what happened meanwhile.',
  'uplink.evicted':
    'History did not go up, for the budget of an uplink or that of the history; its gaps were told.',
  'uplink.over-budget':
    'More waits for an uplink than its budget allows: some of it will not go up, and be told as gaps.',
  'uplink.undeclared': 'An uplink of the settings cannot begin, such as for a context that is not there.',
  'uplink.down': 'The broker of an uplink cannot be reached or does not take anything.',
  'uplink.up': 'The broker of an uplink takes what it is sent again.',
  'uplink.history-down':
    'The broker of an uplink takes no histories now; what is current goes up, and history waits.',
  'uplink.history-up': 'The broker of an uplink takes histories again.',
  'uplink.reconciled': 'An uplink compared what went up with what its broker holds.',
  'uplink.reconcile-cancelled': 'A comparison was ended by somebody before it was through.',
  'uplink.centre-restored': 'The broker of an uplink holds less than it did; what is missing is looked for.',
  'uplink.refused': 'The broker of an uplink will not take something.',
  'uplink.refused-let-go':
    'The oldest that the broker of an uplink refused went from the queue for want of room.',
  'registration.made': 'This gateway was registered at another broker as context source.',
  'registration.failed': 'A registration at another broker could not be made or renewed; it is tried again.',
  'tunnel.up': 'A tunnel is open: that of a gateway to here, or ours to a centre.',
  'tunnel.down': 'A tunnel was closed, or cannot be opened.',
  'tunnel.refused':
    'A gateway came with a name that another one has, and was refused; a name is released by `selvedge tunnels`.',
  'tunnel.displaced': 'Another connection with our name took the place of our tunnel.',
  'tunnel.taken-over':
    'Another process with the same name took the place of a tunnel; two gateways may have one identity.',
  'copies.loaded': 'Copies of entities of another broker were loaded for the first time since the start.',
  'copies.failed': 'Copies cannot be had from another broker now; the last good ones stay.',
  'copies.refused': 'Something that another broker told cannot be an entity here.',
  'copies.stream-ended': 'Another broker stopped telling of changes; copies are loaded again.',
  'downward.undone': 'What the settings do not want any more was removed at another broker.',
  'downward.not-undone': 'That could not be removed now; it is tried again.',
  'plugin.started': 'A plugin runs.',
  'plugin.failed': 'Something failed in a plugin and is tried again.',
  'plugin.quarantined': 'A plugin failed too often, or could not be started; it rests until the next start.',
  'search.schema-mistake': 'A file of search.schemaFolder has a mistake and is left out.',
  'plugin.no-listener': 'A plugin has no port of its own, because it cannot be opened.',
  'plugin.file-renewed':
    'The file of a plugin was damaged; it was set aside, and what it held is derived again.',
  'indexing.read': 'All entities of a broker were read into the index.',
  'indexing.disk': 'The index cannot be written for its disk; it is tried again.',
  'indexing.subscription-gone': 'A subscription of the index was not there any more, and is made again.',
  'indexing.broker-down': 'A registered broker cannot be reached or used; its entries count as aged.',
  'indexing.broker-silent':
    'A registered broker answers but cannot notify this gateway; see indexing.callbackUrl.',
  'indexing.broker-up': 'A registered broker is there again; it is read anew.',
  'indexing.broker-learnt': 'A broker that a registration of a context source names is indexed, too.',
  'indexing.subscription-left': 'A subscription of the index stays at a broker that was taken out.',
  'context.fetched': 'A user @context was fetched and kept.',
  'context.unavailable': 'A user @context could not be fetched; a kept copy stands in, if there is one.',
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

/** A log that hands complete lines to `write`; lines below `level` cost one comparison. */
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
