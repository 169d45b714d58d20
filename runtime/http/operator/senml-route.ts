/**
 * POST /senml: one SenML pack (RFC 8428) by HTTP, without configuration. The route passes the bytes to the
 * intake as a frame and answers after the decoded values are on disk. Only the bridge interprets SenML.
 */

import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'
import { productToken } from '#base/register/version.ts'
import type { Clock } from '#base/time/clock.ts'
import type { Frame } from '#contract'
import { type Bodies, type HttpContext, headerOf } from '#http/request/body.ts'
import { bodyType } from '#http/request/negotiate.ts'
import type { Answers } from '#http/request/response.ts'
import type { FrameOutcome } from '#intake/intake.ts'
import { notSupported } from '#ngsi-ld/values/ngsi-ld-problem.ts'

export const senmlPath = '/senml'

/** The intake's port: settles after the commit. @throws (by rejection) store.busy, store.full */
export type TakeFrame = (frame: Frame) => Promise<FrameOutcome>

/**
 * Maximum number of problems in a response, so that a pack of a thousand bad records does not return a
 * thousand sentences.
 */
const problemsShown = 10

export function createSenmlRoutes(ports: {
  takeFrame: TakeFrame
  bodies: Bodies
  answers: Answers
  clock: Clock
}) {
  return Object.freeze({
    /** 204 if every record was accepted, 200 with counts if some were not, 400 if none could be decoded. */
    async push(c: HttpContext): Promise<Response> {
      if ((headerOf(c, 'ngsild-tenant') ?? '') !== '') {
        throw notSupported('NGSILD-Tenant: devices belong to the default tenant')
      }
      const contentType = bodyType(headerOf(c, 'content-type'), [
        'application/senml+json',
        'application/senml+cbor',
      ])
      const payload = await ports.bodies.raw(c)
      if (payload.length > limits.frameBytesMax.value) {
        throw new GatewayError(
          'http.body-too-large',
          `a frame has at most ${limits.frameBytesMax.value} bytes`,
        )
      }
      const { accepted, held, problems } = await ports.takeFrame({
        topic: senmlPath.slice(1),
        payload,
        contentType,
        receivedAt: ports.clock.now(),
        retained: false,
        transport: 'http',
        source: c.env.incoming.socket.remoteAddress,
      })
      const shown = problems.slice(0, problemsShown)
      if (accepted + held === 0 && problems.length > 0) {
        const reasons = shown.map(({ field, reason }) =>
          field === undefined ? reason : `${field}: ${reason}`,
        )
        throw new GatewayError('intake.undecodable', reasons.join('; '), { problems: shown })
      }
      if (problems.length === 0) return new Response(null, { status: 204, headers: { Server: productToken } })
      return ports.answers.json({
        accepted,
        rejected: problems.length,
        problems: shown.map((problem) => ({ ...problem })),
      })
    },
  })
}
