/**
 * Counters, gauges and histograms, each registered once by name, and their Prometheus text exposition
 * (text format 0.0.4). A counter is a plain mutable cell, so that counting costs one addition.
 */
/** Every metric of the gateway with its help line. Names end in their unit; those of counters in `_total`. */
export const metricRegister = {
  selvedge_build_info: 'Always 1; the label is the version.',
  selvedge_uptime_seconds: 'Seconds since start.',
  selvedge_resident_memory_bytes: 'Resident memory of the process.',
  selvedge_event_loop_lag_p99_seconds: '99th percentile of event-loop delay since the last scrape.',
  selvedge_event_loop_lag_max_seconds: 'Longest event-loop delay since the last scrape.',
  selvedge_clock_unsynced: '1 while the system clock is not trusted, 0 otherwise.',
  selvedge_clock_synced: '1 while the system clock is known to be set, 0 otherwise.',
  selvedge_clock_jumps_total: 'Jumps of the system clock.',
  selvedge_clock_ahead_seconds: 'How far the system clock is ahead of the clock in use.',
  selvedge_clock_unsettled_rows: 'Log rows whose times are corrected when the clock is set.',
  selvedge_commits_total: 'Commits on disk.',
  selvedge_commit_seconds: 'Time from sending a group to the writer until it is on disk.',
  selvedge_commit_works_total: 'Works answered, all tenants.',
  selvedge_commit_works_refused_total: 'Works rejected while deciding or writing.',
  selvedge_commit_retries_total: 'Groups rolled back and retried work by work.',
  selvedge_queue_works: 'Writes waiting to be committed.',
  selvedge_observations_total: 'Observations committed.',
  selvedge_observations_duplicate_total: 'Observations recognized as duplicates.',
  selvedge_observations_late_total: 'Observations older than the current value.',
  selvedge_log_number: 'Highest number of the log.',
  selvedge_log_bytes: 'Size of the log.',
  selvedge_tail_observations: 'Observations not yet folded into chunks.',
  selvedge_folds_total: 'Chunks written by folding.',
  selvedge_writebacks_total: 'Entity documents written back.',
  selvedge_history_evicted_total: 'Observations and entity changes removed from history by size or age.',
  selvedge_disk_room_bytes: 'Room for data on the disk or within the quota.',
  selvedge_tenants_closed: 'Tenants that stay closed because their database cannot be used.',
  selvedge_backup_age_seconds: 'Time since the last good backup was started; 100 years if there is none.',
  selvedge_backups_total: 'Backups made.',
  selvedge_backups_failed_total: 'Backups that failed.',
  selvedge_streams_live: 'Streams held in memory.',
  selvedge_entities: 'Entities stored.',
  selvedge_write_bytes_total: 'Bytes handed to the disk by this process (/proc/self/io).',
  selvedge_mqtt_clients: 'MQTT clients connected.',
  selvedge_mqtt_publishes_total: 'PUBLISH packets received.',
  selvedge_mqtt_dropped_total: 'QoS 0 frames dropped because a queue was full.',
  selvedge_mqtt_refused_total: 'Frames acknowledged although the broker refused to store them.',
  selvedge_mqtt_undelivered_total: 'QoS 0 messages not sent because a subscriber reads too slowly.',
  selvedge_mqtt_unsent_total:
    'Messages not sent to an MQTT 5 subscriber because they had expired or were larger than its maximum.',
  selvedge_mqtt_client_errors_total: 'Connections closed because of a client error.',
  selvedge_mqtt_sessions: 'Persistent sessions, connected or not.',
  selvedge_mqtt_offline_messages: 'Messages stored for disconnected persistent sessions.',
  selvedge_mqtt_offline_evicted_total: 'Offline messages dropped at a session or total ceiling.',
  selvedge_mqtt_retained_messages: 'Retained messages.',
  selvedge_bridge_in_frames_total: 'Frames received from external brokers.',
  selvedge_frames_total: 'Frames claimed by a bridge.',
  selvedge_frames_quarantined_total: 'Frames put into quarantine.',
  selvedge_frames_unclaimed_total: 'Frames that no bridge reads.',
  selvedge_unclaimed_topics: 'Topics that no bridge reads.',
  selvedge_quarantine_frames: 'Frames in quarantine.',
  selvedge_readings_skipped_total:
    'Readings skipped by a rule or because their value means "no value", such as nan.',
  selvedge_readings_rejected_total: 'Readings rejected: not finite, outside the time window, not allowed.',
  selvedge_inference_starts_total: 'Starts of the process that runs ONNX models.',
  selvedge_inference_resident_bytes: 'Resident memory of the inference process; 0 while none runs.',
  selvedge_inference_calls_total: 'Calls of ONNX models answered.',
  selvedge_inference_batches_total: 'Batches sent to the inference process.',
  selvedge_inference_failed_total: 'Calls of ONNX models that failed.',
  selvedge_subscriptions_uncompared_total:
    'Subscriptions not matched with a change because evaluating their patterns would exceed a limit.',
  selvedge_deliveries_waiting: 'Notifications not yet delivered.',
  selvedge_deliveries_unconfirmed: 'Notifications that streaming consumers have not confirmed.',
  selvedge_deliveries_sent_total: 'Notifications answered with 2xx.',
  selvedge_deliveries_failed_total: 'Delivery attempts that failed.',
  selvedge_deliveries_dead_total: 'Notifications that became dead letters.',
  selvedge_deliveries_dropped_total: 'Notifications dropped at the ceiling of an endpoint.',
  selvedge_plugins_failed: 'Plugins disabled until the next start because of failures.',
  selvedge_plugin_streams_left_out: 'Streams beyond the ceiling of a plugin, by plugin.',
  selvedge_orchestrator_subscriptions: 'Subscriptions that the orchestrator receives notifications for.',
  selvedge_orchestrator_received_total: 'Notifications that the orchestrator stored.',
  selvedge_orchestrator_waiting: 'Notifications at the orchestrator not yet sent by all ways.',
  selvedge_orchestrator_given_up_total: 'Notifications given up by the orchestrator at its ceiling.',
  selvedge_orchestrator_failure_notices_total: 'Notices of failed and recovered streams that were stored.',
  selvedge_tunnels: 'Tunnels that other gateways hold open to this one.',
  selvedge_tunnels_held: 'Tunnels that this gateway holds open.',
  selvedge_tunnel_requests_total: 'Requests sent to gateways through their tunnels.',
  selvedge_copies: 'Entities copied from other brokers.',
  selvedge_registered: 'Registrations of this gateway at other brokers.',
  selvedge_two_origins_total: 'Values that replaced a value from another gateway.',
  selvedge_uplink_collisions: 'Entities that other gateways also write at the centre, by uplink.',
  selvedge_uplink_up: 'Whether the central broker of an uplink accepts changes, by uplink.',
  selvedge_uplink_behind_seconds: 'Age of the oldest change not yet sent, by uplink.',
  selvedge_uplink_waiting_observations: 'Approximate number of observations not yet sent, by uplink.',
  selvedge_uplink_evicted_total: 'Observations dropped because of the budget of an uplink, by uplink.',
  selvedge_uplink_room_seconds: 'Seconds until unsent data is dropped, by uplink.',
  selvedge_uplink_sent_total: 'Current changes that the central broker accepted, by uplink.',
  selvedge_uplink_past_total: 'Histories that the central broker accepted, by uplink.',
  selvedge_uplink_not_kept_total:
    'Histories that the central broker does not store, or that passed through it before, by uplink.',
  selvedge_uplink_refused_total: 'Changes that the central broker rejected for good, by uplink.',
  selvedge_uplink_refused_let_go_total:
    'Refused changes dropped since start because their queue was full, by uplink.',
  selvedge_uplink_refused_waiting: 'Refused changes that no operator has re-sent or dropped, by uplink.',
  selvedge_uplink_sent_bytes_total: 'Bytes of request bodies sent since start, by uplink.',
  selvedge_unsent_bytes: 'Bytes written to clients that they have not read, within the shared budget.',
  selvedge_clients_stalled_total: 'Clients disconnected because they did not read.',
  selvedge_connections_refused_total: 'HTTP connections closed at once because there were too many.',
  selvedge_http_requests_total: 'HTTP requests answered.',
  selvedge_http_errors_total: 'HTTP requests answered with 5xx.',
} as const satisfies Record<string, string>

export type MetricName = keyof typeof metricRegister
type CounterName = Extract<MetricName, `${string}_total`>
/** The only histogram. */
const histogramName = 'selvedge_commit_seconds' satisfies MetricName
type HistogramName = typeof histogramName

/** A counter: add by `count.value += n`. */
export interface Counter {
  value: number
}

export interface Histogram {
  /** Records one duration in seconds. */
  observe(seconds: number): void
}

export interface Metrics {
  counter(name: CounterName): Counter
  /** Registers a gauge; `read` is called at each scrape. */
  gauge(name: MetricName, read: () => number, labels?: string): void
  /** Registers a set of labelled series that may change over time; `read` is called at each scrape. */
  series(name: MetricName, read: () => readonly (readonly [labels: string, value: number])[]): void
  histogram(name: HistogramName): Histogram
  /** Returns the text exposition of everything registered so far. */
  expose(): string
}

export function metricKind(name: MetricName): 'counter' | 'gauge' | 'histogram' {
  if (name.endsWith('_total')) return 'counter'
  return name === histogramName ? 'histogram' : 'gauge'
}

const bucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export function createMetrics(): Metrics {
  const counters = new Map<CounterName, Counter>()
  const gauges = new Map<MetricName, { read: () => number; labels: string }[]>()
  const series = new Map<MetricName, (() => readonly (readonly [string, number])[])[]>()
  const histograms = new Map<HistogramName, { counts: Float64Array; sum: number }>()

  return {
    counter(name) {
      let counter = counters.get(name)
      if (counter === undefined) {
        counter = { value: 0 }
        counters.set(name, counter)
      }
      return counter
    },
    gauge(name, read, labels = '') {
      const list = gauges.get(name) ?? []
      list.push({ read, labels })
      gauges.set(name, list)
    },
    series(name, read) {
      series.set(name, [...(series.get(name) ?? []), read])
    },
    histogram(name) {
      let cell = histograms.get(name)
      if (cell === undefined) {
        cell = { counts: new Float64Array(bucketsSeconds.length + 1), sum: 0 }
        histograms.set(name, cell)
      }
      const found = cell
      return {
        observe(seconds) {
          let bucket = 0
          while (bucket < bucketsSeconds.length && seconds > bucketsSeconds[bucket]!) bucket++
          found.counts[bucket]!++
          found.sum += seconds
        },
      }
    },
    expose() {
      const lines: string[] = []
      const head = (name: MetricName): void => {
        lines.push(`# HELP ${name} ${metricRegister[name]}`, `# TYPE ${name} ${metricKind(name)}`)
      }
      for (const [name, counter] of counters) {
        head(name)
        lines.push(`${name} ${counter.value}`)
      }
      for (const [name, list] of gauges) {
        head(name)
        for (const { read, labels } of list) lines.push(`${name}${labels} ${read()}`)
      }
      for (const [name, reads] of series) {
        const found = reads.flatMap((read) => read())
        if (found.length === 0) continue
        head(name)
        for (const [labels, value] of found) lines.push(`${name}${labels} ${value}`)
      }
      for (const [name, { counts, sum }] of histograms) {
        head(name)
        let total = 0
        counts.forEach((count, index) => {
          total += count
          lines.push(`${name}_bucket{le="${bucketsSeconds[index] ?? '+Inf'}"} ${total}`)
        })
        lines.push(`${name}_sum ${sum}`, `${name}_count ${total}`)
      }
      return `${lines.join('\n')}\n`
    },
  }
}
