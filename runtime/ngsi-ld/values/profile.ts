/**
 * The conformance profile: selects the version of GS CIM 009 for points on which versions contradict each
 * other. Features that no version forbids are always on; this table contains only contradictions.
 */

/** API version of the core @context that an address refers to; 1.0 is the address without a version. */
export type CoreVersion = '1.0' | '1.3' | '1.4' | '1.5' | '1.6' | '1.7' | '1.8' | '1.9'

export type ConformanceProfile = '1.1.2' | '1.8' | '1.9' | 'platform'

export interface ProfileRules {
  /**
   * The core @context referenced in responses. Names are always those of the newest core (see
   * core-context.ts).
   */
  readonly coreVersion: CoreVersion
  /** PATCH attrs of a missing attribute: appended (5.6.2 since 1.6), or refused in a 207. */
  readonly updateAppendsMissing: boolean
  /** Whether the response to a create contains the id as text, as clients of the oldest brokers expect. */
  readonly createAnswersId: boolean
  /** Status of LdContextNotAvailable (table 6.3.2-1): 503 until 1.7, 504 since. */
  readonly contextNotAvailableStatus: 503 | 504
  /** Status of a query that created an entity map (6.4.3.2). */
  readonly mapMadeStatus: 200 | 201
  /** Whether the gateway serves the platform's original components: see docs/compatibility.md. */
  readonly servesPlatform?: boolean
}

const newest: ProfileRules = {
  coreVersion: '1.9',
  updateAppendsMissing: true,
  createAnswersId: false,
  contextNotAvailableStatus: 504,
  mapMadeStatus: 201,
}

export const profiles: Readonly<Record<ConformanceProfile, ProfileRules>> = {
  '1.1.2': {
    coreVersion: '1.0',
    updateAppendsMissing: false,
    createAnswersId: true,
    contextNotAvailableStatus: 503,
    mapMadeStatus: 200,
  },
  '1.8': {
    coreVersion: '1.8',
    updateAppendsMissing: true,
    createAnswersId: false,
    contextNotAvailableStatus: 504,
    mapMadeStatus: 200,
  },
  '1.9': newest,
  platform: { ...newest, servesPlatform: true },
}
