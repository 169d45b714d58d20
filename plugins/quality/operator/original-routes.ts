/**
 * Paths of the original component that are not those of this one: its pages lead to the tabs of the page, and
 * its forms change the same data.
 */

import type { RouteRequest, RouteTable } from '#client/routes/route-table.ts'
import type { Json } from '#contract'
import { isObject, own, parsedJson } from '#ngsi-ld/values/json.ts'
import { badRequestData } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { type Configuration, settingOf } from './configuration.ts'
import type { PropertyTable } from './property-table.ts'

/** The first segment of all paths of the original component. */
export const originalPrefix = '/semanticenrichment'

/** Settings by their keys in the file of the original component. */
const originalKeys: Readonly<Record<string, string>> = {
  enablena: 'enableNa',
  maxlogentries: 'maxLogEntries',
}

export interface OriginalPorts {
  readonly configuration: Configuration
  readonly properties: PropertyTable
  /** Called after a change that may give streams other value ranges. */
  readonly rangesChanged: () => void
  /** Subscriptions at the broker. */
  readonly subscriptions: {
    created(): readonly string[]
    create(subscription: Json): Promise<unknown>
    delete(id: string): Promise<void>
  }
}

export function createOriginalRoutes(ports: OriginalPorts): RouteTable {
  const { configuration, properties, rangesChanged, subscriptions } = ports
  const running = (): Response => new Response('running')
  const page = { GET: () => seeOther('streams') }
  /** A form that changes something and leads to a tab. */
  const form = (tab: string, work: (fields: URLSearchParams) => void | Promise<void>) => ({
    async POST(request: RouteRequest): Promise<Response> {
      await work(new URLSearchParams((await request.environment.body()).toString()))
      return seeOther(tab)
    },
  })
  const subscriptionPage = { GET: () => seeOther('subscriptions') }
  const reload = { POST: () => seeOther('subscriptions') }
  const routes: RouteTable = {
    '': page,
    '/index': page,
    '/showdatasources': page,
    '/showmetadata': { GET: () => seeOther('metadata') },
    '/log': { GET: () => seeOther('log') },
    '/configuration': { GET: () => seeOther('configuration') },
    '/status': { GET: running },
    '/showsubscriptions': { ...subscriptionPage, ...reload },
    '/getsubscriptions': reload,
    '/addsubscription': form('subscriptions', async (fields) => {
      const given = parsedJson(required(fields, 'subscription'))
      if (given === undefined) throw badRequestData('is not valid JSON', 'subscription')
      await subscriptions.create(given)
    }),
    '/deletesubscription': form('subscriptions', (fields) => subscriptions.delete(required(fields, 'subid'))),
    '/deleteallsubscriptions': form('subscriptions', async () => {
      for (const id of [...subscriptions.created()]) await subscriptions.delete(id)
    }),
    '/addmetadata': form('metadata', (fields) => {
      properties.put(required(fields, 'type'), entryOf(required(fields, 'metadata')))
      rangesChanged()
    }),
    '/deletemetadata': form('metadata', (fields) => {
      properties.delete(required(fields, 'mtype'))
      rangesChanged()
    }),
    '/changeconfiguration': form('configuration', (fields) => {
      const [key, value] = [required(fields, 'key'), settingOf(required(fields, 'value'))]
      if (key === 'deleteqoi') {
        if (value !== false)
          throw badRequestData('must be false: qualities are updated, not deleted', 'value')
        return
      }
      configuration.put(originalKeys[key] ?? key, { value })
      rangesChanged()
    }),
  }
  return {
    // Browsers get the page; others get the text of the original.
    '/': {
      GET: ({ request }) =>
        request.headers.get('accept')?.includes('text/html') === true ? redirect('/ui') : running(),
    },
    ...Object.fromEntries(Object.entries(routes).map(([path, route]) => [originalPrefix + path, route])),
  }
}

const redirect = (path: string): Response => new Response(null, { status: 303, headers: { Location: path } })
const seeOther = (tab: string): Response => redirect(`${originalPrefix}/ui#${tab}`)

function required(fields: URLSearchParams, name: string): string {
  const text = fields.get(name)
  if (text === null || text === '') throw badRequestData('is required', name)
  return text
}

/** An entry of the original table, whose unknown figures are `NA`. */
function entryOf(text: string): Json {
  const given = parsedJson(text)
  if (!isObject(given)) throw badRequestData('must be a JSON object', 'metadata')
  const known = ['min', 'max', 'regexp', 'updateInterval'].map((name) => [name, own(given, name)] as const)
  return Object.fromEntries(
    known.flatMap(([name, value]) => (value === undefined || value === 'NA' ? [] : [[name, value]])),
  )
}
