/** Hysteresis of a rule: it matches from its threshold on, until its statistic is well below. */

const usualEndShare = 0.7
const beginShare = 0.5

export interface Hold {
  isOn: boolean
  /** Time since which the statistic is above half the threshold; null if it is below. */
  since: number | null
}

export const createHold = (): Hold => ({ isOn: false, since: null })

export interface HeldStatistic {
  /** In units of its threshold. */
  readonly statistic: number
  readonly time: number
  /** The rule ends when the statistic is below this share of the threshold. */
  readonly endShare?: number
}

/** Takes a statistic. Returns when it rose, while the rule matches. */
export function takeHold(
  hold: Hold,
  { statistic, time, endShare = usualEndShare }: HeldStatistic,
): number | undefined {
  hold.isOn = statistic >= (hold.isOn ? endShare : 1)
  if (statistic < beginShare) hold.since = null
  else hold.since ??= time
  return hold.isOn ? hold.since! : undefined
}
