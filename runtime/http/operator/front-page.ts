/**
 * The page at the root of the main listener: links to everything the gateway serves, as HTML for browsers and
 * as JSON for other clients. The page loads nothing and runs no script.
 */
import { hash } from 'node:crypto'
import { qualitiesOf } from '#base/load/media-range.ts'
import { productToken, version } from '#base/register/version.ts'
import { hostedContextsPath, platformContextPath } from '#broker/contexts/context-resolver.ts'
import { iotStream, sosa } from '#contract/vocabulary.ts'
import { sourceIdentityPath } from '#http/distribution/source-identity.ts'
import { attributesPath, typesPath } from '#http/entities/discovery.ts'
import { entitiesPath } from '#http/entities/entity-routes.ts'
import { type HttpContext, headerOf } from '#http/request/body.ts'
import { subscriptionsPath } from '#http/subscriptions/subscription-routes.ts'
import { backupsPath } from './backup-routes.ts'
import type { Components } from './components.ts'
import { devicesPath } from './device-routes.ts'
import { queuePath, uplinksPath } from './uplink-routes.ts'

interface Link {
  readonly href: string
  readonly title: string
}

interface Section {
  readonly title: string
  readonly links: readonly Link[]
}

const link = (href: string, title: string): Link => ({ href, title })

const queryOf = (type: string): string => `${entitiesPath}?type=${encodeURIComponent(type)}&options=keyValues`

const dataLinks = [
  link(typesPath, 'Entity types'),
  link(attributesPath, 'Attributes'),
  link(`${entitiesPath}?local=true&limit=20`, 'Entities of this gateway'),
  link(queryOf(sosa.Platform), 'Devices'),
  link(queryOf(iotStream.StreamObservation), 'Newest values'),
  link(subscriptionsPath, 'Subscriptions'),
  link(hostedContextsPath, 'JSON-LD contexts'),
  link(platformContextPath, 'Vocabulary of the platform (JSON-LD context)'),
]

const operationLinks = [
  link('/health/ready', 'Readiness, with reasons'),
  link('/metrics', 'Metrics for Prometheus'),
  link(devicesPath, 'Devices awaiting acceptance, unclaimed topics'),
  link(uplinksPath, 'Uplinks to central brokers'),
  link(queuePath, 'Dead letters'),
  link(backupsPath, 'Backups'),
  link('/selvedge/v1/plugins', 'Plugins'),
  link('/selvedge/v1/info', 'Version and profile'),
  link(sourceIdentityPath, 'Identity of this gateway as a context source'),
  link('/openapi.json', 'All routes (OpenAPI 3.1)'),
]

/** Pages of plugins, by the name of the plugin. */
const pluginLinks: Readonly<Record<string, readonly Link[]>> = {
  search: [link('/search/', 'Explore in GraphQL')],
  ranking: [link('/ranking/', 'Rank streams and sensors')],
  quality: [link('/quality/ui', 'Quality of streams')],
  indexing: [link('/indexing/', 'Index of streams and sensors')],
  faults: [link('/faults/api/status', 'Fault detection')],
  'virtual-sensors': [link('/virtual-sensors/api/status', 'Virtual sensors')],
  patterns: [link('/patterns/api/model', 'Models of patterns')],
  orchestrator: [link('/orchestrator/clients', 'Clients of the orchestrator')],
}

export function createFrontPage(components: Pick<Components, 'has'>): (c: HttpContext) => Response {
  const sections = (): readonly Section[] => {
    const found = Object.entries(pluginLinks).flatMap(([name, links]) => (components.has(name) ? links : []))
    return [
      { title: 'Data (NGSI-LD)', links: dataLinks },
      ...(found.length === 0 ? [] : [{ title: 'Find', links: found }]),
      { title: 'Operation', links: operationLinks },
    ]
  }
  return (c) => {
    const [page = 0, json = 0] = qualitiesOf(headerOf(c, 'accept') ?? '*/*', [
      'text/html',
      'application/json',
    ])
    if (page > 0 && page >= json) return new Response(pageOf(sections()), { headers: pageHeaders })
    const body = JSON.stringify({ product: 'selvedge', version, sections: sections() })
    return new Response(body, { headers: { ...shared, 'Content-Type': 'application/json' } })
  }
}

const style = `
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-bottom: 0 }
ul { margin-top: .25rem; padding-left: 1.25rem } code { opacity: .7; overflow-wrap: anywhere }
`

const shared = { Server: productToken, Vary: 'Accept', 'Cache-Control': 'no-cache' }

const pageHeaders = {
  ...shared,
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}

function pageOf(sections: readonly Section[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Selvedge</title>
<style>${style}</style>
<h1>Selvedge ${version}</h1>
<p>The gateway runs. Most links answer JSON.</p>
${sections.map(sectionOf).join('\n')}
</html>
`
}

function sectionOf({ title, links }: Section): string {
  const items = links.map(({ href, title: what }) => {
    const address = href.replaceAll('&', '&amp;')
    return `<li><a href="${address}">${what}</a> <code>${address}</code></li>`
  })
  return `<h2>${title}</h2>\n<ul>\n${items.join('\n')}\n</ul>`
}
