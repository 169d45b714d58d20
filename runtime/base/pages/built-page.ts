/**
 * Serves a web page of a plugin and its two built files, compressed and cacheable forever by name. Loads
 * nothing from other origins, and keeps nothing in memory. In a checkout, a visit builds files that are
 * missing or older than their sources, in a child process.
 */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { limits } from '#base/limits/limits.ts'
import { GatewayError } from '#base/register/errors.ts'

export interface BuiltPageOptions {
  /** Name of the page and of the folder of its built files. */
  readonly name: string
  /** The program that builds it, beside its sources; absent in a deployment. */
  readonly builder: string
  /** Content-Security-Policy. */
  readonly policy: string
}

export interface BuiltPage {
  html(request: Request): Promise<Response>
  /** A built file. @throws http.no-route if there is none of this name. */
  file(name: string, request: Request): Response
}

export function createBuiltPage({ name, builder, policy }: BuiltPageOptions): BuiltPage {
  const isCheckout = existsSync(builder)
  const here = import.meta.dirname
  const folder = isCheckout ? join(here, '../../../dist/pages', name) : join(here, 'pages', name)
  const html = join(folder, 'page.html')
  const secured = { 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff' }
  let building: Promise<void> | undefined

  /** Whether the built page is missing, or older than a file beside its builder. */
  function isStale(): boolean {
    if (!existsSync(html)) return true
    if (!isCheckout) return false
    const builtAt = statSync(html).mtimeMs
    const sources = dirname(builder)
    return readdirSync(sources).some((file) => statSync(join(sources, file)).mtimeMs > builtAt)
  }

  return Object.freeze({
    async html(request) {
      if (building !== undefined || isStale()) {
        building ??= build({ name, builder, folder }).finally(() => {
          building = undefined
        })
        await building
      }
      const text = readFileSync(html)
      const headers = { ...secured, 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-cache' }
      return new Response(request.method === 'HEAD' ? null : text, { headers })
    },
    file(file, request) {
      const [, ending] = /^page-[0-9a-f]{12}\.(js|css)$/.exec(file) ?? []
      if (ending === undefined) throw new GatewayError('http.no-route', `the page has no file ${file}`)
      const tag = `"${file}"`
      const kept = {
        ...secured,
        ETag: tag,
        'Cache-Control': 'public, max-age=31536000, immutable',
        Vary: 'Accept-Encoding',
      }
      if (request.headers.get('if-none-match') === tag)
        return new Response(null, { status: 304, headers: kept })
      const accepted = request.headers.get('accept-encoding') ?? ''
      const [encoding, suffix] = /\bbr\b/.test(accepted) ? ['br', 'br'] : ['gzip', 'gz']
      const path = join(folder, `${file}.${suffix}`)
      if (!existsSync(path)) throw new GatewayError('http.no-route', 'The page was rebuilt; reload it')
      const headers = { ...kept, 'Content-Type': types[ending]!, 'Content-Encoding': encoding }
      return new Response(request.method === 'HEAD' ? null : readFileSync(path), { headers })
    },
  } satisfies BuiltPage)
}

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
}

function build({
  name,
  builder,
  folder,
}: Omit<BuiltPageOptions, 'policy'> & { folder: string }): Promise<void> {
  if (!existsSync(builder)) {
    throw new GatewayError(
      'plugin.unavailable',
      `The ${name} page is not part of this deployment; the HTTP interface works without it`,
    )
  }
  return new Promise((resolve, reject) => {
    const timeout = limits.pageBuildMs.value
    execFile(process.execPath, [builder, folder], { timeout }, (error, _out, stderr) => {
      if (error === null) return resolve()
      const [why = ''] = (stderr || error.message).split('\n')
      reject(new GatewayError('plugin.unavailable', `The ${name} page could not be built: ${why}`))
    })
  })
}
