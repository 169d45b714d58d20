/**
 * Findings from the first match of a rule to the last: a match begins a finding, continues it or makes it
 * definite, and a finding without a match has ended. One event often exceeds several learned thresholds;
 * only the first of these begins a finding for some samples.
 */
import type { FaultClass, FaultFinding, Match } from '#plugins/faults/rules/finding.ts'

/** Classes that one event often has several of. */
const learnedClasses: ReadonlySet<FaultClass> = new Set([
  'spike',
  'noise',
  'rate',
  'bias',
  'gain',
  'drift',
  'anomaly',
])
/** Definite findings of these classes follow from several events, or from a stated limit. */
const ownEvents: ReadonlySet<FaultClass> = new Set(['spike', 'rate'])
const quietSamples = 30

export interface FindingsState {
  /** Findings that last, with the newest time at which their rule matched. */
  running: { match: Match; last: number }[]
  /** Samples since a learned rule last began a finding. */
  sinceLearned: number
}

export const createFindingsState = (): FindingsState => ({ running: [], sinceLearned: quietSamples })

export interface FindingChanges {
  /** New findings, and findings that became definite. */
  readonly begun: readonly FaultFinding[]
  readonly ended: readonly FaultFinding[]
}

const noChanges: FindingChanges = { begun: [], ended: [] }

export function takeMatches(state: FindingsState, matches: readonly Match[], time: number): FindingChanges {
  state.sinceLearned++
  if (matches.length === 0 && state.running.length === 0) return noChanges
  const begun = matches
    .filter((match) => isNews(state, match, time))
    .map((match) => toFinding(state.running.find((one) => one.match.class === match.class)!.match))
  const isOver = (found: FaultClass): boolean => !matches.some((one) => one.class === found)
  const over = state.running.filter(({ match }) => isOver(match.class))
  if (over.length > 0) state.running = state.running.filter(({ match }) => !isOver(match.class))
  // A dropout covers no sample: it ends with the first one after it.
  const ended = over.map(({ match, last }) => toFinding(match, match.class === 'dropout' ? time : last))
  return { begun, ended }
}

/** Adds a match to the running findings; true if it is to be reported. */
function isNews(state: FindingsState, match: Match, time: number): boolean {
  const running = state.running.find((one) => one.match.class === match.class)
  if (running === undefined) {
    const isOwnEvent = match.kind === 'definite' && ownEvents.has(match.class)
    if (learnedClasses.has(match.class) && !isOwnEvent) {
      if (state.sinceLearned < quietSamples) return false
      state.sinceLearned = 0
    }
    state.running.push({ match, last: time })
    return true
  }
  running.last = time
  if (running.match.kind === match.kind || match.kind === 'anomaly') return false
  // A rule and a model may differ in when it began; the finding stays the same.
  running.match = { ...match, begin: running.match.begin }
  return true
}

const toFinding = (match: Match, end?: number): FaultFinding => ({
  class: match.class,
  kind: match.kind,
  begin: match.begin,
  likelihood: match.likelihood,
  method: match.method ?? `rule:${match.class}`,
  ...(end !== undefined && { end }),
})
