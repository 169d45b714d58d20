/** AMQP brokers that plugins publish to. The library is loaded with the first connection. */
import { passwordReader, trustedWith } from '#config/load/secret-files.ts'
import type { OpenExchanges } from '#contract'

/** Opens connections, which end with the plugin. */
export function createExchanges(given: AsyncDisposableStack): OpenExchanges {
  return async ({ url, username, passwordFile, caFile }, handlers) => {
    const password = passwordReader(passwordFile)
    const ca = trustedWith(caFile)
    const { openAmqpPublisher } = await import('#delivery/amqp-publisher.ts')
    return given.adopt(await openAmqpPublisher(handlers, { url, username, password, ca }), (one) =>
      one.close(),
    )
  }
}
