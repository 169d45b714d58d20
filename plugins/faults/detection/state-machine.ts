/**
 * The state of a stream: normal, anomaly, fault, recovering. A leaky counter turns an anomaly that persists
 * into a fault; a definite rule does so at once. A fault ends in two steps: the first good sample leads to
 * recovering, and a number of good samples to normal. Alarms among them do not count, unless they persist
 * anew. Counts samples only, so a replay gives the states of a live feed. `detection-settings.ts` has both
 * counts.
 */

export type StreamState = 'normal' | 'anomaly' | 'fault' | 'recovering'

export interface MachineState {
  state: StreamState
  /** The leaky counter: 1 more for an alarm, half less for a sample without one. */
  alarms: number
  /** Good samples since the last one of a fault. */
  good: number
}

export interface MachineLimits {
  /** Alarms from which an anomaly is a fault. */
  readonly persistenceSamples: number
  /** Good samples after which a fault is over. */
  readonly clearSamples: number
}

export const createMachineState = (): MachineState => ({ state: 'normal', alarms: 0, good: 0 })

const leak = 0.5

export function takeOpinion(
  machine: MachineState,
  opinion: 'good' | 'alarm' | 'definite',
  { persistenceSamples, clearSamples }: MachineLimits,
): StreamState {
  const { state, alarms, good } = machine
  const raised = { good: alarms - leak, alarm: alarms + 1, definite: persistenceSamples }[opinion]
  machine.alarms = Math.min(persistenceSamples, Math.max(0, raised))
  const isFault = opinion !== 'good' && machine.alarms >= persistenceSamples
  if (isFault || state === 'fault') machine.good = Number(opinion === 'good')
  else if (opinion === 'good') machine.good = good + 1
  if (state === 'fault' && opinion === 'good') {
    machine.state = 'recovering'
    machine.alarms = 0
  } else if (state === 'fault') machine.state = 'fault'
  else if (isFault) machine.state = 'fault'
  else if (state !== 'recovering') machine.state = machine.alarms > 0 ? 'anomaly' : 'normal'
  if (machine.state === 'recovering' && machine.good >= clearSamples) {
    machine.state = 'normal'
    machine.alarms = 0
  }
  return machine.state
}
