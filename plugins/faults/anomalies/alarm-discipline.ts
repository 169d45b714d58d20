/**
 * Which of the abnormal samples raise an alarm: after one, the same condition is not reported again for a
 * while. Pure.
 */

export interface DisciplineSettings {
  /** Samples after an alarm in which no other is raised. */
  readonly quietSamples: number
  /** The score from which a sample is an alarm. */
  readonly alarmScore: number
}

export function createAlarmDiscipline({ quietSamples, alarmScore }: DisciplineSettings) {
  let sinceAlarm = Number.POSITIVE_INFINITY

  return Object.freeze({
    /** True if a sample with this score is to be reported. */
    take(score: number): boolean {
      sinceAlarm++
      if (score < alarmScore || sinceAlarm <= quietSamples) return false
      sinceAlarm = 0
      return true
    },
  })
}
