/** Bundles the page of the quality analyser. Argument: the output folder. */
import { join } from 'node:path'
import { bundlePage } from '#base/pages/bundle-page.ts'

export const buildQualityPage = (folder: string): Promise<readonly string[]> =>
  bundlePage(
    {
      script: join(import.meta.dirname, 'page.js'),
      title: 'Selvedge quality',
      body: '<noscript>This page needs JavaScript.</noscript>',
      path: 'ui',
    },
    folder,
  )

if (import.meta.main) await buildQualityPage(process.argv[2]!)
