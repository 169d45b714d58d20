/**
 * All plugins; each is loaded when it is enabled. A plugin's key is also the name of its section in the
 * settings.
 */
export const plugins = {
  ranking: async () => (await import('./ranking/plugin.ts')).default,
  search: async () => (await import('./search/plugin.ts')).default,
  faults: async () => (await import('./faults/plugin.ts')).default,
  orchestrator: async () => (await import('./orchestrator/plugin.ts')).default,
  quality: async () => (await import('./quality/plugin.ts')).default,
  patterns: async () => (await import('./patterns/plugin.ts')).default,
  'virtual-sensors': async () => (await import('./virtual-sensors/plugin.ts')).default,
  indexing: async () => (await import('./indexing/plugin.ts')).default,
}
