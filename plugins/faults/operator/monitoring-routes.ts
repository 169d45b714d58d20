/** Paths of the original component: its callbacks, its status as text, and its log. */
import { limits } from '#base/limits/limits.ts'
import type { LogLines } from '#client/routes/log-lines.ts'
import { jsonBody, type RouteRequest, type RouteTable } from '#client/routes/route-table.ts'
import type { Json } from '#contract'

/** The first segment of the paths of the original component. */
export const originalPrefix = '/monitoring'

const callbackPaths = ['/callback', `${originalPrefix}/callback`]

/** The end of the path of a callback. */
export interface CallbackSecret {
  /** Purpose of the subscription. */
  readonly purpose: string
  readonly signature: string
}

export interface MonitoringPorts {
  readonly lines: LogLines
  /** Purposes of the subscriptions. */
  readonly purposes: readonly string[]
  /** Takes the body of a callback; without a secret if it comes from a client. */
  readonly receive: (body: Json, secret: CallbackSecret | undefined) => Promise<void>
}

/** Paths of the callbacks of subscriptions; each has a secret of its own as the last part. */
export const secretPaths = (purposes: readonly string[]): string[] =>
  callbackPaths.flatMap((path) => purposes.map((purpose) => `${path}/${purpose}/`))

export function createMonitoringRoutes({ lines, purposes, receive }: MonitoringPorts): RouteTable {
  const sent = {
    async POST(request: RouteRequest): Promise<Response> {
      await receive(await jsonBody(request), undefined)
      return new Response('OK')
    },
  }
  const notified = (purpose: string) => ({
    async POST(request: RouteRequest): Promise<Response> {
      await receive(await jsonBody(request), { purpose, signature: request.segment })
      return new Response('OK')
    },
  })
  const callbacks = callbackPaths.flatMap((path) => [
    [`${path}/*`, sent] as const,
    ...purposes.map((purpose) => [`${path}/${purpose}/*`, notified(purpose)] as const),
  ])
  const running = { GET: () => new Response('running') }
  const log = {
    GET: () =>
      new Response(
        lines
          .newest({ level: 'info', limit: limits.pluginLogLines.value })
          .map(({ at, level, event, facts }) => `${at} ${level} ${event} ${facts}\n`)
          .join(''),
        { headers: { 'Content-Type': 'text/plain; charset=utf-8' } },
      ),
  }
  return {
    '/': running,
    [originalPrefix]: running,
    [`${originalPrefix}/status`]: running,
    [`${originalPrefix}/running`]: running,
    ...Object.fromEntries(callbacks),
    [`${originalPrefix}/log`]: log,
    [`${originalPrefix}/log.txt`]: log,
  }
}
