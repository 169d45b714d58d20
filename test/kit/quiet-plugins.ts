/**
 * Plugins are reached under the main port. The quality analyser and fault detection are off, since they add entities
 * and attributes to those that tests count. A test that wants it otherwise says so.
 */
export const quietPlugins = {
  SELVEDGE_RANKING_PORT: 'off',
  SELVEDGE_SEARCH_PORT: 'off',
  SELVEDGE_ORCHESTRATOR_PORT: 'off',
  SELVEDGE_QUALITY_ENABLED: 'false',
  SELVEDGE_FAULTS_ENABLED: 'false',
}
