/**
 * What a refused action says, as text to match: `bad-request-data id: must be a URI`, or `accepted`. Errors that are
 * not the gateway's own go through, so that a bug never passes for a refusal.
 */
import { isGatewayError } from '#base/register/errors.ts'

export function refusal(action: () => unknown): string {
  try {
    action()
  } catch (error) {
    if (isGatewayError(error)) return `${error.code.replace('ngsi-ld.', '')} ${error.message}`
    throw error
  }
  return 'accepted'
}
