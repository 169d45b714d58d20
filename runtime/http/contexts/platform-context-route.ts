/**
 * Serves the @context document of the platform's vocabulary, at the same path on every gateway. Contexts of
 * users are served by hosted-context-routes.ts.
 */
import { productToken } from '#base/register/version.ts'
import { platformContextDocument } from '#ngsi-ld/context/platform-context.ts'

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
