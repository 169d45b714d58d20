/**
 * Routes for operators: the uplinks of a tenant, and its queue of failed items. A failed item is a dead
 * letter, or a change that the central broker of an uplink rejected. These routes are not part of NGSI-LD.
 */

import { GatewayError } from '#base/register/errors.ts'
import type { DeadLetters, DeadLetterView } from '#broker/subscriptions/dead-letters.ts'
import type { ApiPorts } from '#http/request/api-ports.ts'
import type { HttpContext } from '#http/request/body.ts'
import type { ApiRequest } from '#http/request/request.ts'
import { pagingOf, truthOf } from '#ngsi-ld/query/url-parameters.ts'
import { msToDateTime } from '#ngsi-ld/values/datetime.ts'
import { notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { shownAddress } from '#ngsi-ld/values/secrets.ts'
import type { UplinkRefusalRow } from '#store/tables/uplink-states.ts'

/** The operator's view of the uplinks of one tenant. Their states are JSON. */
export interface UplinkOperations {
  list(): readonly object[]
  get(id: string): object | undefined
  /** Problems that need an operator's attention. */
  complaints(): readonly string[]
  /** Settles when the state is on disk; false if the uplink does not exist. @throws ngsi-ld.conflict */
  pause(id: string, isPaused: boolean): Promise<boolean>
  /**
   * Starts a comparison with the central broker; false if the uplink does not exist. @throws ngsi-ld.conflict
   */
  reconcile(id: string, isDry: boolean): Promise<boolean>
  /**
   * Stops a running comparison; false if the uplink does not exist. @throws ngsi-ld.conflict if none is
   * running
   */
  cancelReconcile(id: string): Promise<boolean>
  /**
   * Writes to the central broker, reads back and reports problems; undefined if the uplink does not exist.
   */
  test(id: string): Promise<object | undefined>
  refusalCount(): number
  /** Newest first. */
  refusals(page: { limit: number; offset: number }): readonly UplinkRefusalRow[]
  refusal(q: number): UplinkRefusalRow | undefined
  /** Retries at once; false if it does not exist. @throws ngsi-ld.conflict, peer.unavailable, peer.refused */
  retry(q: number): Promise<boolean>
  drop(q: number): Promise<boolean>
}

export interface UplinkRoutePorts extends ApiPorts {
  readonly uplinks: (tenant: string) => UplinkOperations | undefined
}

export const uplinksPath = '/selvedge/v1/uplinks'
export const queuePath = '/selvedge/v1/queue'

const none: ReadonlySet<string> = new Set()
const reconcileParameters: ReadonlySet<string> = new Set(['dryRun'])
const pageParameters: ReadonlySet<string> = new Set(['limit', 'offset'])

export function createUplinkTable(ports: UplinkRoutePorts) {
  const { requests, answers, uplinks } = ports
  const operated = ({ tenant }: ApiRequest): UplinkOperations => {
    const found = uplinks(tenant)
    if (found === undefined) throw new GatewayError('http.busy', 'the gateway is starting')
    return found
  }
  const idOf = (c: HttpContext): string => c.req.param('id') ?? ''
  const unknown = (c: HttpContext): GatewayError => notFound(`there is no uplink ${idOf(c)}`)

  const hold = (isPaused: boolean) => async (c: HttpContext) => {
    const request = await requests.read(c, none)
    if (!(await operated(request).pause(idOf(c), isPaused))) throw unknown(c)
    return answers.data(request, operated(request).get(idOf(c)))
  }

  return {
    [uplinksPath]: {
      async GET(c: HttpContext) {
        const request = await requests.read(c, none)
        return answers.data(request, operated(request).list())
      },
    },
    [`${uplinksPath}/:id`]: {
      async GET(c: HttpContext) {
        const request = await requests.read(c, none)
        const found = operated(request).get(idOf(c))
        if (found === undefined) throw unknown(c)
        return answers.data(request, found)
      },
    },
    [`${uplinksPath}/:id/pause`]: { POST: hold(true) },
    [`${uplinksPath}/:id/resume`]: { POST: hold(false) },
    [`${uplinksPath}/:id/reconcile`]: {
      async POST(c: HttpContext) {
        const request = await requests.read(c, reconcileParameters)
        const isDry = truthOf(request.parameters, 'dryRun') ?? false
        if (!(await operated(request).reconcile(idOf(c), isDry))) throw unknown(c)
        return answers.data(request, operated(request).get(idOf(c)), { status: 202 })
      },
      async DELETE(c: HttpContext) {
        const request = await requests.read(c, none)
        if (!(await operated(request).cancelReconcile(idOf(c)))) throw unknown(c)
        return answers.data(request, operated(request).get(idOf(c)))
      },
    },
    [`${uplinksPath}/:id/test`]: {
      async POST(c: HttpContext) {
        const request = await requests.read(c, none)
        const result = await operated(request).test(idOf(c))
        if (result === undefined) throw unknown(c)
        return answers.data(request, result)
      },
    },
    ...createQueueTable(ports, operated),
  }
}

/** Queue items have ids such as `notification-12` and `uplink-3`. */
function createQueueTable(
  { requests, answers }: UplinkRoutePorts,
  operated: (request: ApiRequest) => UplinkOperations,
) {
  /** Runs the function for the kind of an item. @throws ngsi-ld.not-found if the item does not exist */
  async function withItem<T>(
    c: HttpContext,
    of: {
      notification(letters: DeadLetters, d: number): T | Promise<T>
      uplink(operations: UplinkOperations, q: number): T | Promise<T>
    },
  ) {
    const request = await requests.read(c, none)
    const id = c.req.param('id') ?? ''
    const [, kind, number] = /^(notification|uplink)-(\d{1,15})$/.exec(id) ?? []
    const done =
      kind === 'notification'
        ? await of.notification(request.broker.deadLetters, Number(number))
        : kind === 'uplink'
          ? await of.uplink(operated(request), Number(number))
          : undefined
    if (done === undefined || done === false) throw notFound(`no dead letter with id ${id}`)
    return { request, done }
  }

  return {
    [queuePath]: {
      async GET(c: HttpContext) {
        const request = await requests.read(c, pageParameters)
        const { limit, offset } = pagingOf(request.parameters)
        const { deadLetters } = request.broker
        const [letters, refusals] = [deadLetters.count(), operated(request).refusalCount()]
        const first = deadLetters.list({ limit, offset }).map(letterView)
        const left = { limit: limit - first.length, offset: Math.max(0, offset - letters) }
        const rest = left.limit > 0 ? operated(request).refusals(left).map(refusalView) : []
        return answers.data(request, { count: letters + refusals, items: [...first, ...rest] })
      },
    },
    [`${queuePath}/:id`]: {
      async GET(c: HttpContext) {
        const { request, done } = await withItem<object | undefined>(c, {
          notification(letters, d) {
            const letter = letters.get(d)
            return letter && { ...letterView(letter), body: letter.body }
          },
          uplink(operations, q) {
            const refusal = operations.refusal(q)
            return refusal && { ...refusalView(refusal), body: refusal.step }
          },
        })
        return answers.data(request, done)
      },
      async DELETE(c: HttpContext) {
        const { request } = await withItem(c, {
          notification: (letters, d) => letters.drop(d),
          uplink: (operations, q) => operations.drop(q),
        })
        return answers.noContent(request)
      },
    },
    [`${queuePath}/:id/retry`]: {
      async POST(c: HttpContext) {
        const { request } = await withItem(c, {
          notification: (letters, d) => letters.retry(d),
          uplink: (operations, q) => operations.retry(q),
        })
        return answers.noContent(request)
      },
    },
  }
}

const letterView = ({ d, subscription, endpoint, entity, at, buried, reason }: DeadLetterView) => ({
  id: `notification-${d}`,
  kind: 'notification',
  subscription,
  endpoint: shownAddress(endpoint),
  entity: entity === '' ? undefined : entity,
  happenedAt: msToDateTime(at),
  givenUpAt: msToDateTime(buried),
  reason,
})

const refusalView = ({ q, uplink, entity, at, reason }: UplinkRefusalRow) => ({
  id: `uplink-${q}`,
  kind: 'uplink',
  subscription: uplink,
  entity,
  givenUpAt: msToDateTime(at),
  reason,
})
