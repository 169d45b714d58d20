/** All plugins, each loaded when it is to run. What they are called is what their section of the settings is called. */
export const plugins = {
  ranking: async () => (await import('./ranking/plugin.ts')).default,
  search: async () => (await import('./search/plugin.ts')).default,
  indexing: async () => (await import('./indexing/plugin.ts')).default,
}
