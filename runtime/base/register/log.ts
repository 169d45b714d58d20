/**
 * Structured log lines, one JSON object each. The set of event names is closed, so that an operator can
 * search for them and a test can list them. No line contains a secret.
 */

/** Every event; its comment is its meaning in the reference page. */
export const logEvents = [
  /** The process starts; version and data folder. */
  'gateway.starting',
  /** All listeners are open and the log has been replayed. */
  'gateway.ready',
  /** The process received a stop signal. */
  'gateway.stopping',
  /** All listeners and files are closed. */
  'gateway.stopped',
  /** An unexpected internal error. */
  'gateway.fault',
  /** A request failed because of an internal error; the response contains the id. */
  'gateway.internal-error',
  /** The system clock is not trusted; the gateway uses monotonic time and corrects its stamps later. */
  'clock.unsynced',
  /** The system clock is trusted, although no time source is known to have set it. */
  'clock.coarse',
  /** A time source set the system clock. */
  'clock.synced',
  /** The system clock jumped. */
  'clock.jumped',
  /** Times stamped while the clock was unsynced were corrected, or kept if no correction is known. */
  'clock.settled',
  /** Settings are valid but probably not what was intended. */
  'config.warning',
  /** A setting names a component that this version does not contain. */
  'config.absent-part',
  /** A tenant database was opened. */
  'store.opened',
  /** The data format was migrated. */
  'store.migrated',
  /** A group could not be written and is retried work by work. */
  'store.commit-failed',
  /** Unfolded log rows were replayed. */
  'store.replayed',
  /** History was removed by size or age: how many instances, and up to which time. */
  'history.evicted',
  /** A tenant exceeds history.maxBytes and has no history left to remove. */
  'history.no-room',
  /** The disk is full; writes are rejected until there is room. */
  'store.full',
  /** A backup was written, and verified if backup verification is set. */
  'backup.made',
  /** A backup does not match its manifest; an older one is used. */
  'backup.unusable',
  /** A database was found damaged while it was open. */
  'store.damaged',
  /** A damaged database was set aside and replaced by a backup; the facts list what is missing. */
  'store.restored',
  /** The end of a write-ahead log is lost; the facts list what is missing. */
  'store.log-cut',
  /** A tenant stays closed because its database cannot be used. */
  'store.refused',
  /** A backup failed; the last good one is kept. */
  'backup.failed',
  /** The disk fails; writes are rejected until it recovers. */
  'store.unwritable',
  /** Room on the disk or in the quota is short; backups, snapshots and history are deleted. */
  'disk.tight',
  /** There is no room; writes are rejected, deletions are accepted. */
  'disk.full',
  /** There is room again. */
  'disk.room',
  /** Data was deleted to free disk space. */
  'disk.shed',
  /** The reserve file was deleted so that deletions can be written. */
  'disk.reserve-released',
  /** The reserve file was created again. */
  'disk.reserve-made',
  /** An HTTP listener is open. */
  'http.listening',
  /** Clients that did not read their responses were disconnected: how many, and the bytes unsent. */
  'connection.stalled',
  /** More HTTP clients connected than file descriptors and limits allow; excess connections were closed. */
  'connection.refused',
  /** The MQTT listener is open. */
  'mqtt.listening',
  /** A client violated the protocol or was refused. */
  'mqtt.client-error',
  /** Messages of a disconnected session were dropped at a ceiling. */
  'mqtt.session-evicted',
  /** A session expired. */
  'mqtt.session-ended',
  /** A retained message was not stored because a ceiling was reached. */
  'mqtt.retained-refused',
  /** A frame can never be stored; it was acknowledged and dropped. */
  'mqtt.frame-refused',
  /** The changed password file cannot be read; the last good one stays in use. */
  'mqtt.passwords-unreadable',
  /** The disk rejects commits; publishers wait. */
  'mqtt.held',
  /** Connected to an external broker. */
  'bridge-in.connected',
  /** The connection to an external broker was lost. */
  'bridge-in.lost',
  /** An external broker refused the connection or a subscription. */
  'bridge-in.refused',
  /**
   * A frame was quarantined: reason and topic. At most one line a second is logged during a flood; it counts
   * the others.
   */
  'intake.quarantined',
  /**
   * Held frames were decoded and stored, because their format can now be read or their device was accepted.
   */
  'intake.released',
  /**
   * A topic that no bridge reads was seen for the first time; readableBy names a bridge that could read it.
   * At most one line a second is logged during a flood; omitted counts the others.
   */
  'intake.unclaimed',
  /** An operator accepted or ignored a device or a topic, or withdrew that decision. */
  'intake.chosen',
  /** A topic cannot be read with the mapping that an operator chose; it is unclaimed. */
  'intake.mapping-unusable',
  /** A device was seen for the first time. */
  'intake.provisioned',
  /** The endpoint of a snapshot could not be notified. */
  'snapshot.unnotified',
  /** An endpoint stopped responding. */
  'delivery.endpoint-down',
  /** An endpoint responds again. */
  'delivery.endpoint-up',
  /** A periodic notification could not be created; the next one is due after one period. */
  'delivery.period-failed',
  /** A notification became a dead letter. */
  'delivery.dead',
  /** A context source that was unreachable for long still holds a subscription that ended here. */
  'subscription.left-behind',
  /** A subscription could not be forwarded to a context source; this is retried. */
  'subscription.not-passed-on',
  /** A context source refused a forwarded subscription. */
  'subscription.refused',
  /** Two gateways write the same attribute of an entity here; logged once per pair. */
  'entity.two-origins',
  /** Another gateway writes the same attributes at the centre: one device may be connected at two sites. */
  'uplink.collision',
  /** An uplink is behind: it sends current values first, then the history. */
  'uplink.catching-up',
  /** History was not sent because of the budget of an uplink or of the history; it was reported as gaps. */
  'uplink.evicted',
  /** The backlog of an uplink exceeds its budget: part of it will be dropped and reported as gaps. */
  'uplink.over-budget',
  /** An uplink of the settings cannot start, for example because its context is unavailable. */
  'uplink.undeclared',
  /** The central broker of an uplink is unreachable or accepts nothing. */
  'uplink.down',
  /** The central broker of an uplink accepts changes again. */
  'uplink.up',
  /** The central broker of an uplink rejects histories; current values are sent, and history waits. */
  'uplink.history-down',
  /** The central broker of an uplink accepts histories again. */
  'uplink.history-up',
  /** An uplink compared its entities with those of the central broker. */
  'uplink.reconciled',
  /** An operator cancelled a comparison. */
  'uplink.reconcile-cancelled',
  /** The central broker of an uplink holds less than before; the uplink searches what is missing. */
  'uplink.centre-restored',
  /** The central broker of an uplink rejected a change for good. */
  'uplink.refused',
  /** The queue of refused changes of an uplink was full; the oldest was dropped. */
  'uplink.refused-let-go',
  /** This gateway was registered at another broker as a context source. */
  'registration.made',
  /** A registration at another broker could not be created or renewed; this is retried. */
  'registration.failed',
  /** A tunnel is open: from a gateway to this one, or from this one to a centre. */
  'tunnel.up',
  /** A tunnel was closed, or cannot be opened. */
  'tunnel.down',
  /**
   * A gateway connected with a name reserved for another one and was refused; `selvedge tunnels` releases a
   * name.
   */
  'tunnel.refused',
  /** Another connection with our name replaced our tunnel. */
  'tunnel.displaced',
  /** Another process with the same name replaced a tunnel; two gateways may share one identity. */
  'tunnel.taken-over',
  /** Copies of entities of another broker were loaded for the first time since the start. */
  'copies.loaded',
  /** Copies cannot be loaded from another broker; the last good ones are kept. */
  'copies.failed',
  /** Data of another broker was rejected because it is not a valid entity here. */
  'copies.refused',
  /** Another broker stopped sending changes; its copies are loaded again. */
  'copies.stream-ended',
  /** Objects at another broker that the settings no longer require were deleted. */
  'downward.undone',
  /** Such an object could not be deleted; this is retried. */
  'downward.not-undone',
  /** A plugin is running. */
  'plugin.started',
  /** An operation of a plugin failed or takes too long; its field `during` names the operation. */
  'plugin.failed',
  /** A plugin failed too often, or could not start; it is disabled until the next start. */
  'plugin.disabled',
  /** A file of search.schemaFolder has a mistake and is ignored. */
  'search.schema-mistake',
  /** The port of a plugin cannot be opened. */
  'plugin.no-listener',
  /** A Redis server that has copies for a plugin cannot be reached; the gateway works without it. */
  'plugin.redis-down',
  /** A Redis server is connected. */
  'plugin.redis-connected',
  /** A subscription of a plugin was missing and is created again. */
  'plugin.subscription-gone',
  /** A broker that a plugin follows is unreachable or unusable. */
  'plugin.broker-down',
  /** Such a broker responds but cannot notify this gateway; see the plugin's callbackUrl. */
  'plugin.broker-silent',
  /** Such a broker is reachable again and is read again. */
  'plugin.broker-up',
  /** A plugin has as many streams as its ceiling allows; it leaves further ones out, and counts them. */
  'plugin.streams-left-out',
  /** The file of a plugin was damaged; it was set aside, and its content is derived again. */
  'plugin.file-renewed',
  /** The process that runs ONNX models was started. */
  'inference.started',
  /**
   * The inference process ended unexpectedly, or by SIGTERM, SIGINT or SIGHUP (level info); it starts again
   * at the next call after a pause.
   */
  'inference.ended',
  /** The native library for ONNX models cannot be loaded on this board; models are not used. */
  'inference.no-runtime',
  /** Models were added, changed or removed. */
  'model.changed',
  /** A model is not used; the reason names the file. */
  'model.refused',
  /** The streams that exist were read for the pattern models. */
  'patterns.read',
  /** Events cannot be written to the broker; this is retried. */
  'patterns.unwritten',
  /** The broker rejected an Event; it is dropped. */
  'patterns.event-refused',
  /** Too many windows wait for an ONNX model that cannot run; the oldest are skipped and counted. */
  'patterns.windows-skipped',
  /** A subscription of a pattern model was missing and is created again. */
  'patterns.subscription-gone',
  /** A virtual sensor could not be trained. */
  'virtual-sensors.training-failed',
  /** The assigned ONNX model could not be compared; the virtual sensor uses the built-in families. */
  'virtual-sensors.model-untested',
  /** Somebody deleted entities of a virtual sensor; they are created again. Stop it to delete it. */
  'virtual-sensors.entities-gone',
  /** The streams that exist are known to fault detection. */
  'faults.read',
  /** A fault or anomaly of a stream began. */
  'faults.began',
  /** A fault or anomaly of a stream ended. */
  'faults.ended',
  /** Detection of a stream was stopped or restarted by a request. */
  'faults.switched',
  /** A stream cannot be judged; its detector begins anew. */
  'faults.detector-failed',
  /** A virtual sensor replaces a broken sensor, or was withdrawn. */
  'faults.replaced',
  /** The virtual sensor creator does not do what a broken or healed sensor needs; this is retried. */
  'faults.not-replaced',
  /** Findings of fault detection cannot be written to the broker; this is retried. */
  'faults.unwritten',
  /** Too many findings waited: a Fault was dropped with its begin and end. Once until a write succeeds. */
  'faults.dropped',
  /** The broker rejected findings of fault detection; they are dropped. */
  'faults.refused',
  /** Connected to the AMQP server of the orchestrator. */
  'orchestrator.amqp-connected',
  /** The connection to that server was lost; notifications wait on disk. */
  'orchestrator.amqp-lost',
  /** That server cannot be reached, or rejected the connection; this is retried. */
  'orchestrator.amqp-refused',
  /** That server rejected an exchange or queue of a subscription; this is retried. */
  'orchestrator.not-declared',
  /** Too many notifications waited; the oldest were given up. */
  'orchestrator.notifications-given-up',
  /** A stream that applications subscribed to failed; they are notified. */
  'orchestrator.stream-failed',
  /** That stream works again; they are notified. */
  'orchestrator.stream-recovered',
  /** The streams that exist were read, with the observations of their last day. */
  'quality.read',
  /** Qualities cannot be written to the broker; this is retried. */
  'quality.unwritten',
  /** The next value of a stream is overdue. */
  'quality.silent',
  /** A silent stream sends values again. */
  'quality.resumed',
  /** Connected to the message broker of streams. */
  'quality.source-connected',
  /** The message broker of streams cannot be reached, or refuses a topic or queue; this is retried. */
  'quality.source-unreachable',
  /** The access details of streams are not followed: their host is not allowed, or they are wrong. */
  'quality.source-refused',
  /** All entities of a broker were read into the index. */
  'indexing.read',
  /** The index cannot be written because of its disk; this is retried. */
  'indexing.disk',
  /** A broker that a context source registration names is now indexed. */
  'indexing.broker-learnt',
  /** A subscription of the index remains at a broker that was removed. */
  'indexing.subscription-left',
  /** A user @context was fetched and cached. */
  'context.fetched',
  /** A user @context could not be fetched; a cached copy is used if there is one. */
  'context.unavailable',
  /** A new HTTP token was written to the data folder. */
  'access.token-created',
] as const

export type LogEvent = (typeof logEvents)[number]
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
