/**
 * Plugins are reached under the main port. The quality analyser is off, since it adds entities and links to those
 * that tests count. A test that wants it otherwise says so.
 */
export const quietPlugins = {
  SELVEDGE_RANKING_PORT: 'off',
  SELVEDGE_SEARCH_PORT: 'off',
  SELVEDGE_QUALITY_ENABLED: 'false',
}
