/** Paths of the original component: its status as text, and its log. */
import { limits } from '#base/limits/limits.ts'
import type { LogLines } from '#client/log-lines.ts'
import type { RouteTable } from '#client/route-table.ts'

/** The first segment of the paths of the original component. */
export const originalPrefix = '/monitoring'

export function createMonitoringRoutes(lines: LogLines): RouteTable {
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
    [`${originalPrefix}/log`]: log,
    [`${originalPrefix}/log.txt`]: log,
  }
}
