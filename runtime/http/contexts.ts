/**
 * Serves the @context document of the platform's vocabulary, at the same path on every gateway. The documents of
 * users are served by json-ld-contexts.ts.
 */
import { productToken } from '#base/version.ts'
import { platformContextDocument } from '#ngsi-ld/platform-context.ts'

export function createContextRoutes() {
  const text = JSON.stringify(platformContextDocument)
  const headers = {
    'Content-Type': 'application/ld+json',
    'Cache-Control': 'public, max-age=86400',
    Server: productToken,
  }
  return Object.freeze({
    platform: () => new Response(text, { headers }),
  })
}
