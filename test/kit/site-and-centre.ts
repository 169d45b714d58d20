/**
 * Two whole gateways for each test of a file: one at a site and one that is the centre for it. Their folders go afterwards.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { type GatewayInside, startGatewayInside } from './gateway-inside.ts'

export interface SiteAndCentre {
  readonly site: GatewayInside
  readonly centre: GatewayInside
}

export function siteAndCentre(): SiteAndCentre {
  let folder: string
  let both: SiteAndCentre
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'selvedge-pair-'))
    const start = (name: string) => startGatewayInside(join(folder, name))
    const [site, centre] = await Promise.all([start('site'), start('centre')])
    both = { site, centre }
  })
  afterEach(async () => {
    await Promise.all([both.site.close(), both.centre.close()])
    rmSync(folder, { recursive: true })
  })
  return {
    get site() {
      return both.site
    },
    get centre() {
      return both.centre
    },
  }
}
