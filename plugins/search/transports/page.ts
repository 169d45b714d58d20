/**
 * Serves the IDE page and its two built files, compressed and cacheable forever by name. Loads nothing from
 * other origins, and keeps nothing in memory. In a checkout, the first visit builds missing files in a child
 * process.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'

export interface PagePlaces {
  /** Folder of the built files. */
  readonly folder: string
  /** The build program; absent in a deployment. */
  readonly builder: string
}

export function createPage(places: PagePlaces) {
  let building: Promise<void> | undefined

  async function page(request: Request): Promise<Response> {
    const file = join(places.folder, 'page.html')
    if (!existsSync(file)) {
      building ??= build(places).finally(() => {
        building = undefined
      })
      await building
    }
    const html = readFileSync(file)
    const headers = { ...secured, 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-cache' }
    return new Response(request.method === 'HEAD' ? null : html, { headers })
  }

  return Object.freeze({
    /** A file by its path, `/` for the page; undefined for other paths. */
    answer(path: string, request: Request): Promise<Response> | undefined {
      if (path === '/' || path === '') return page(request)
      const [, name, ending] = /^\/ide\/(page-[0-9a-f]{12}\.(js|css))$/.exec(path) ?? []
      return name === undefined ? undefined : Promise.resolve(packed(places.folder, name, ending!, request))
    },
  })
}

/** The script may only connect to its own origin; the editor creates styles at run time. */
const secured = {
  'Content-Security-Policy':
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; worker-src 'self' blob:; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

function packed(folder: string, name: string, ending: string, request: Request): Response {
  const tag = `"${name}"`
  const kept = {
    ...secured,
    ETag: tag,
    'Cache-Control': 'public, max-age=31536000, immutable',
    Vary: 'Accept-Encoding',
  }
  if (request.headers.get('if-none-match') === tag) return new Response(null, { status: 304, headers: kept })
  const accepted = request.headers.get('accept-encoding') ?? ''
  const [encoding, suffix] = /\bbr\b/.test(accepted) ? ['br', 'br'] : ['gzip', 'gz']
  const file = join(folder, `${name}.${suffix}`)
  if (!existsSync(file)) throw new GatewayError('http.no-route', 'The page was rebuilt; reload it')
  const headers = { ...kept, 'Content-Type': types[ending]!, 'Content-Encoding': encoding }
  return new Response(request.method === 'HEAD' ? null : readFileSync(file), { headers })
}

function build({ folder, builder }: PagePlaces): Promise<void> {
  if (!existsSync(builder)) {
    throw new GatewayError(
      'plugin.unavailable',
      'The IDE page is not part of this deployment; /graphql works without it',
    )
  }
  return new Promise((resolve, reject) => {
    const timeout = limits.searchBuildMs.value
    execFile(process.execPath, [builder, folder], { timeout }, (error, _out, stderr) => {
      if (error === null) return resolve()
      const [why = ''] = (stderr || error.message).split('\n')
      reject(new GatewayError('plugin.unavailable', `The page of the IDE could not be built: ${why}`))
    })
  })
}
