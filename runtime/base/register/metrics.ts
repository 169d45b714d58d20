/**
 * Counters, gauges and histograms, each registered once by name, and their Prometheus text exposition
 * (text format 0.0.4). A counter is a plain mutable cell, so that counting costs one addition.
 */
import { assert } from './errors.ts'

/** Every metric of the gateway: kind and help line. Names end in their unit. */
export const metricRegister = {
  selvedge_build_info: ['gauge', 'Always 1; the label is the version.'],
  selvedge_uptime_seconds: ['gauge', 'Seconds since start.'],
  selvedge_resident_memory_bytes: ['gauge', 'Resident memory of the process.'],
  selvedge_event_loop_lag_p99_seconds: [
    'gauge',
    '99th percentile of event-loop delay since the last scrape.',
  ],
  selvedge_event_loop_lag_max_seconds: ['gauge', 'Longest event-loop delay since the last scrape.'],
  selvedge_clock_unsynced: ['gauge', '1 while the system clock is not trusted, 0 otherwise.'],
  selvedge_clock_synced: ['gauge', '1 while the system clock is known to be set, 0 otherwise.'],
  selvedge_clock_jumps_total: ['gauge', 'Jumps of the system clock.'],
  selvedge_clock_ahead_seconds: ['gauge', 'How far the system clock is ahead of the clock in use.'],
  selvedge_clock_unsettled_rows: ['gauge', 'Log rows whose times are corrected when the clock is set.'],
  selvedge_commits_total: ['counter', 'Commits on disk.'],
  selvedge_commit_seconds: ['histogram', 'Time from sending a group to the writer until it is on disk.'],
  selvedge_commit_works_total: ['counter', 'Works answered, all tenants.'],
  selvedge_commit_works_refused_total: ['counter', 'Works rejected while deciding or writing.'],
  selvedge_commit_retries_total: ['counter', 'Groups rolled back and retried work by work.'],
  selvedge_queue_works: ['gauge', 'Writes waiting to be committed.'],
  selvedge_observations_total: ['counter', 'Observations committed.'],
  selvedge_observations_duplicate_total: ['counter', 'Observations recognized as duplicates.'],
  selvedge_observations_late_total: ['counter', 'Observations older than the current value.'],
  selvedge_log_number: ['gauge', 'Highest number of the log.'],
  selvedge_log_bytes: ['gauge', 'Size of the log.'],
  selvedge_tail_observations: ['gauge', 'Observations not yet folded into chunks.'],
  selvedge_folds_total: ['counter', 'Chunks written by folding.'],
  selvedge_writebacks_total: ['counter', 'Entity documents written back.'],
  selvedge_history_evicted_total: [
    'counter',
    'Observations and entity changes removed from history by size or age.',
  ],
  selvedge_disk_room_bytes: ['gauge', 'Room for data on the disk or within the quota.'],
  selvedge_tenants_closed: ['gauge', 'Tenants that stay closed because their database cannot be used.'],
  selvedge_backup_age_seconds: [
    'gauge',
    'Time since the last good backup was started; 100 years if there is none.',
  ],
  selvedge_backups_total: ['counter', 'Backups made.'],
  selvedge_backups_failed_total: ['counter', 'Backups that failed.'],
  selvedge_streams_live: ['gauge', 'Streams held in memory.'],
  selvedge_entities: ['gauge', 'Entities stored.'],
  selvedge_write_bytes_total: ['gauge', 'Bytes handed to the disk by this process (/proc/self/io).'],
  selvedge_mqtt_clients: ['gauge', 'MQTT clients connected.'],
  selvedge_mqtt_publishes_total: ['counter', 'PUBLISH packets received.'],
  selvedge_mqtt_dropped_total: ['counter', 'QoS 0 frames dropped because a queue was full.'],
  selvedge_mqtt_refused_total: ['counter', 'Frames acknowledged although the broker refused to store them.'],
  selvedge_mqtt_undelivered_total: [
    'counter',
    'QoS 0 messages not sent because a subscriber reads too slowly.',
  ],
  selvedge_mqtt_unsent_total: [
    'counter',
    'Messages not sent to an MQTT 5 subscriber because they had expired or were larger than its maximum.',
  ],
  selvedge_mqtt_client_errors_total: ['counter', 'Connections closed because of a client error.'],
  selvedge_mqtt_sessions: ['gauge', 'Persistent sessions, connected or not.'],
  selvedge_mqtt_offline_messages: ['gauge', 'Messages stored for disconnected persistent sessions.'],
  selvedge_mqtt_offline_evicted_total: ['counter', 'Offline messages dropped at a session or total ceiling.'],
  selvedge_mqtt_retained_messages: ['gauge', 'Retained messages.'],
  selvedge_bridge_in_frames_total: ['counter', 'Frames received from external brokers.'],
  selvedge_frames_total: ['counter', 'Frames claimed by a bridge.'],
  selvedge_frames_quarantined_total: ['counter', 'Frames put into quarantine.'],
  selvedge_frames_unclaimed_total: ['counter', 'Frames that no bridge reads.'],
  selvedge_unclaimed_topics: ['gauge', 'Topics that no bridge reads.'],
  selvedge_quarantine_frames: ['gauge', 'Frames in quarantine.'],
  selvedge_readings_skipped_total: [
    'counter',
    'Readings skipped by a rule or because their value means "no value", such as nan.',
  ],
  selvedge_readings_rejected_total: [
    'counter',
    'Readings rejected: not finite, outside the time window, not allowed.',
  ],
  selvedge_subscriptions_uncompared_total: [
    'counter',
    'Subscriptions not matched with a change because evaluating their patterns would exceed a limit.',
  ],
  selvedge_deliveries_waiting: ['gauge', 'Notifications not yet delivered.'],
  selvedge_deliveries_unconfirmed: ['gauge', 'Notifications that streaming consumers have not confirmed.'],
  selvedge_deliveries_sent_total: ['counter', 'Notifications answered with 2xx.'],
  selvedge_deliveries_failed_total: ['counter', 'Delivery attempts that failed.'],
  selvedge_deliveries_dead_total: ['counter', 'Notifications that became dead letters.'],
  selvedge_deliveries_dropped_total: ['counter', 'Notifications dropped at the ceiling of an endpoint.'],
  selvedge_plugins_failed: ['gauge', 'Plugins disabled until the next start because of failures.'],
  selvedge_tunnels: ['gauge', 'Tunnels that other gateways hold open to this one.'],
  selvedge_tunnels_held: ['gauge', 'Tunnels that this gateway holds open.'],
  selvedge_tunnel_requests_total: ['counter', 'Requests sent to gateways through their tunnels.'],
  selvedge_copies: ['gauge', 'Entities copied from other brokers.'],
  selvedge_registered: ['gauge', 'Registrations of this gateway at other brokers.'],
  selvedge_two_origins_total: ['counter', 'Values that replaced a value from another gateway.'],
  selvedge_uplink_collisions: ['gauge', 'Entities that other gateways also write at the centre, by uplink.'],
  selvedge_uplink_up: ['gauge', 'Whether the central broker of an uplink accepts changes, by uplink.'],
  selvedge_uplink_behind_seconds: ['gauge', 'Age of the oldest change not yet sent, by uplink.'],
  selvedge_uplink_waiting_observations: [
    'gauge',
    'Approximate number of observations not yet sent, by uplink.',
  ],
  selvedge_uplink_evicted_total: [
    'counter',
    'Observations dropped because of the budget of an uplink, by uplink.',
  ],
  selvedge_uplink_room_seconds: ['gauge', 'Seconds until unsent data is dropped, by uplink.'],
  selvedge_uplink_sent_total: ['counter', 'Current changes that the central broker accepted, by uplink.'],
  selvedge_uplink_past_total: ['counter', 'Histories that the central broker accepted, by uplink.'],
  selvedge_uplink_not_kept_total: [
    'counter',
    'Histories that the central broker does not store, or that passed through it before, by uplink.',
  ],
  selvedge_uplink_refused_total: ['counter', 'Changes that the central broker rejected for good, by uplink.'],
  selvedge_uplink_refused_let_go_total: [
    'counter',
    'Refused changes dropped since start because their queue was full, by uplink.',
  ],
  selvedge_uplink_refused_waiting: [
    'gauge',
    'Refused changes that no operator has re-sent or dropped, by uplink.',
  ],
  selvedge_uplink_sent_bytes_total: ['counter', 'Bytes of request bodies sent since start, by uplink.'],
  selvedge_unsent_bytes: [
    'gauge',
    'Bytes written to clients that they have not read, within the shared budget.',
  ],
  selvedge_clients_stalled_total: ['counter', 'Clients disconnected because they did not read.'],
  selvedge_connections_refused_total: [
    'counter',
    'HTTP connections closed at once because there were too many.',
  ],
  selvedge_http_requests_total: ['counter', 'HTTP requests answered.'],
  selvedge_http_errors_total: ['counter', 'HTTP requests answered with 5xx.'],
} as const satisfies Record<string, readonly ['counter' | 'gauge' | 'histogram', string]>

export type MetricName = keyof typeof metricRegister

/** A counter: add by `count.value += n`. */
export interface Counter {
  value: number
}

export interface Histogram {
  /** Records one duration in seconds. */
  observe(seconds: number): void
}

export interface Metrics {
  counter(name: MetricName): Counter
  /** Registers a gauge; `read` is called at each scrape. */
  gauge(name: MetricName, read: () => number, labels?: string): void
  /** Registers a set of labelled series that may change over time; `read` is called at each scrape. */
  series(name: MetricName, read: () => readonly (readonly [labels: string, value: number])[]): void
  histogram(name: MetricName): Histogram
  /** Returns the text exposition of everything registered so far. */
  expose(): string
}

const bucketsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export function createMetrics(): Metrics {
  const counters = new Map<MetricName, Counter>()
  const gauges = new Map<MetricName, { read: () => number; labels: string }[]>()
  const series = new Map<MetricName, (() => readonly (readonly [string, number])[])[]>()
  const histograms = new Map<MetricName, { counts: Float64Array; sum: number }>()

  return {
    counter(name) {
      assert(metricRegister[name][0] === 'counter', `${name} is a counter`)
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
        lines.push(`# HELP ${name} ${metricRegister[name][1]}`, `# TYPE ${name} ${metricRegister[name][0]}`)
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
