/** HTTP routes for operators: the page, the log, the configuration, and the table of usual properties. */
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { createBuiltPage } from '#base/pages/built-page.ts'
import type { LogLevel } from '#base/register/log.ts'
import { type LogLines, logLevels } from '#client/routes/log-lines.ts'
import { jsonBody, type RouteTable, wholeNumber } from '#client/routes/route-table.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import type { Configuration } from './configuration.ts'
import type { PropertyTable } from './property-table.ts'

export interface OperatorPorts {
  readonly lines: LogLines
  readonly configuration: Configuration
  readonly properties: PropertyTable
  /** Called after a change that may give streams other value ranges. */
  readonly rangesChanged: () => void
}

/** The page loads and sends nothing beyond its own origin. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

export function createOperatorRoutes(ports: OperatorPorts): RouteTable {
  const { lines, configuration, properties, rangesChanged } = ports
  const page = createBuiltPage({
    name: 'quality',
    builder: join(import.meta.dirname, '..', 'page', 'build-quality-page.ts'),
    policy,
  })
  const emptied = (): Response => {
    rangesChanged()
    return new Response(null, { status: 204 })
  }
  return {
    '/ui': { GET: ({ request }) => page.html(request) },
    '/ui/*': { GET: ({ request, segment }) => page.file(segment, request) },
    '/api/log': {
      GET({ parameters }) {
        const max = limits.pluginLogLines.value
        const limit =
          wholeNumber(parameters, { name: 'limit', min: 1, max }) ?? configuration.value('maxLogEntries')
        return Response.json({ max, limit, result: lines.newest({ level: levelOf(parameters), limit }) })
      },
    },
    '/api/configuration': { GET: () => Response.json({ result: configuration.rows() }) },
    '/api/configuration/*': {
      async PUT(request) {
        const row = configuration.put(request.segment, await jsonBody(request))
        rangesChanged()
        return Response.json(row)
      },
      DELETE({ segment }) {
        const row = configuration.reset(segment)
        rangesChanged()
        return Response.json(row)
      },
    },
    '/api/properties': { GET: () => Response.json({ result: properties.all() }) },
    '/api/properties/*': {
      async PUT(request) {
        properties.put(request.segment, await jsonBody(request))
        return emptied()
      },
      DELETE({ segment }) {
        properties.delete(segment)
        return emptied()
      },
    },
  }
}

function levelOf(parameters: URLSearchParams): LogLevel {
  const text = parameters.get('level') ?? 'debug'
  const level = logLevels.find((one) => one === text)
  if (level === undefined) throw badRequestData(`must be one of ${logLevels.join(', ')}`, 'level')
  return level
}
