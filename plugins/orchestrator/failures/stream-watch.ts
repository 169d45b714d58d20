/** The subscription by which the orchestrator watches streams at its broker. */
import type { Watch } from '#client/subscriptions/watch.ts'
import { faultTerms, iotStream } from '#contract/vocabulary.ts'

export const streamWatch: Watch = {
  purpose: 'stream-failures',
  type: iotStream.IotStream,
  attributes: [faultTerms.state],
  description: 'The orchestrator watches the state of streams, to notify applications of failures',
}

/** Ids of the subscription begin with it. */
export const failureSubscriptions = 'urn:ngsi-ld:Subscription:Orchestrator_'
