/** Paths of the original component: its callbacks, its status as text, and its log. */
import { limits } from '#base/limits/limits.ts'
import type { LogLines } from '#client/log-lines.ts'
import { jsonBody, type RouteRequest, type RouteTable } from '#client/route-table.ts'
import type { Json } from '#contract'

/** The first segment of the paths of the original component. */
export const originalPrefix = '/monitoring'

/** @param receive takes the body of a callback, and the secret that is the last part of its path. */
export function createMonitoringRoutes(
  lines: LogLines,
  receive: (body: Json, secret: string) => Promise<void>,
): RouteTable {
  const callback = {
    async POST(request: RouteRequest): Promise<Response> {
      await receive(await jsonBody(request), request.segment)
      return new Response('OK')
    },
  }
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
    '/callback/*': callback,
    [`${originalPrefix}/callback/*`]: callback,
    [`${originalPrefix}/log`]: log,
    [`${originalPrefix}/log.txt`]: log,
  }
}
