/**
 * Ceilings of the pattern extractor; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const patternsLimits = {
  /** Components of a mixture or centroids; each has a label of its own. Beyond it: 400. */
  patternComponentsMax: limit(64, 'components'),
  /** Features of a window; 32 streams of eight segments. Beyond it: 400. */
  patternFeaturesMax: limit(256, 'numbers'),
  /** Labelled examples of a model; all are compared with each window. Beyond it: 400. */
  patternExamplesMax: limit(2000, 'examples'),
} as const satisfies Record<string, Limit>
