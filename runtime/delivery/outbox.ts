/**
 * All outgoing deliveries of a tenant: those sent to endpoints, and those that consumers fetch by streams.
 * Both are rows of the same table and differ by their address.
 */
import { limits } from '#base/limits/limits.ts'
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherPorts,
  type DispatcherSettings,
} from './dispatcher.ts'
import { createStreaming, isStreamed, type Streaming, type StreamingPorts } from './streaming.ts'

export interface Outbox extends Dispatcher, Pick<Streaming, 'listen' | 'confirm'> {}

export function createOutbox(
  ports: DispatcherPorts & Pick<StreamingPorts, 'door'>,
  settings: DispatcherSettings = {},
): Outbox {
  const { reads, metrics } = ports
  const dispatcher = createDispatcher(
    { ...ports, reads: { ...reads, endpoints: () => reads.endpoints().filter((uri) => !isStreamed(uri)) } },
    settings,
  )
  const streaming = createStreaming(
    {
      ...ports,
      dropped: metrics.counter('selvedge_deliveries_dropped_total'),
      sent: metrics.counter('selvedge_deliveries_sent_total'),
    },
    { max: settings.deliveriesPerEndpointMax ?? limits.deliveriesPerEndpointMax.value },
  )
  metrics.gauge('selvedge_deliveries_unconfirmed', streaming.waiting, settings.labels)
  return Object.freeze({
    ...dispatcher,
    start() {
      dispatcher.start()
      streaming.start()
    },
    committed(deliveries) {
      const streamed = deliveries.filter(({ endpoint }) => isStreamed(endpoint))
      if (streamed.length > 0) streaming.committed(streamed)
      if (streamed.length === deliveries.length) return
      dispatcher.committed(
        streamed.length === 0 ? deliveries : deliveries.filter(({ endpoint }) => !isStreamed(endpoint)),
      )
    },
    reread: (endpoint) => (isStreamed(endpoint) ? streaming : dispatcher).reread(endpoint),
    listen: streaming.listen,
    confirm: streaming.confirm,
    async close(deadlineMs) {
      streaming.close()
      await dispatcher.close(deadlineMs)
    },
  } satisfies Outbox)
}
