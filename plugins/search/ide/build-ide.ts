/** Bundles the IDE page. Argument: the output folder. */
import { join } from 'node:path'
import { bundlePage } from '#base/pages/bundle-page.ts'

export const buildIde = (folder: string): Promise<readonly string[]> =>
  bundlePage(
    {
      script: join(import.meta.dirname, 'page.js'),
      title: 'Selvedge search',
      body: '<div id="ide">Loading</div>',
      path: 'ide',
    },
    folder,
  )

if (import.meta.main) await buildIde(process.argv[2]!)
