/** Hysteresis of a rule: it matches from its threshold on, until its statistic is well below. */

const endShare = 0.7
const beginShare = 0.5

export interface Hold {
  isOn: boolean
  /** Time since which the statistic is above half the threshold; null if it is below. */
  since: number | null
}

export const createHold = (): Hold => ({ isOn: false, since: null })

/** Takes a statistic in units of its threshold. Returns when it rose, while the rule matches. */
export function takeHold(hold: Hold, statistic: number, time: number): number | undefined {
  hold.isOn = statistic >= (hold.isOn ? endShare : 1)
  if (statistic < beginShare) hold.since = null
  else hold.since ??= time
  return hold.isOn ? hold.since! : undefined
}
