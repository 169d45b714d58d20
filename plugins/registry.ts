/** All plugins, each loaded when it is to run. What they are called is what their section of the settings is called. */
import type { Capability, Plugin } from '#contract'

/** Settings differ from plugin to plugin. */
export type AnyPlugin = Plugin<never, Capability>

export const plugins: Readonly<Record<string, () => Promise<AnyPlugin>>> = {
  ranking: async () => (await import('./ranking/plugin.ts')).default,
  search: async () => (await import('./search/plugin.ts')).default,
  indexing: async () => (await import('./indexing/plugin.ts')).default,
}
