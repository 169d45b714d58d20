/** The state machine of a stream: persistence, hysteresis, and brief alarms. */
import { describe, expect, it } from 'vitest'
import { defaultDetectionSettings, machineLimits } from './detection-settings.ts'
import { createMachineState, takeOpinion } from './state-machine.ts'

const limits = { persistenceSamples: 5, clearSamples: 3 }
const statesOf = (opinions: readonly ('good' | 'alarm' | 'definite')[]): string[] => {
  const machine = createMachineState()
  return opinions.map((opinion) => takeOpinion(machine, opinion, limits))
}

describe('the state machine', () => {
  it('makes a fault of an anomaly that persists, and not of a single alarm', () => {
    expect(statesOf(['alarm', 'good', 'good'])).toEqual(['anomaly', 'anomaly', 'normal'])
    const states = statesOf(['alarm', 'alarm', 'alarm', 'alarm', 'alarm'])
    expect(states).toEqual(['anomaly', 'anomaly', 'anomaly', 'anomaly', 'fault'])
  })

  it('is a fault at once by a definite rule, and normal only after enough good samples', () => {
    expect(statesOf(['definite', 'good', 'good', 'good'])).toEqual([
      'fault',
      'recovering',
      'recovering',
      'normal',
    ])
  })

  it('counts good samples of a recovery around a single alarm, and anew after a definite one', () => {
    const long = { persistenceSamples: 5, clearSamples: 12 }
    const stateAfter = (opinion: 'alarm' | 'definite') => {
      const machine = createMachineState()
      const good = (count: number) => Array.from({ length: count }, () => 'good' as const)
      const opinions = ['definite' as const, ...good(8), opinion, ...good(4)]
      return opinions.map((one) => takeOpinion(machine, one, long)).at(-1)
    }
    expect([stateAfter('alarm'), stateAfter('definite')]).toEqual(['normal', 'recovering'])
  })

  it('returns from recovering to fault when alarms persist anew', () => {
    expect(statesOf(['definite', 'good', 'alarm']).at(-1)).toBe('recovering')
    const again = Array.from({ length: 5 }, () => 'alarm' as const)
    expect(statesOf(['definite', 'good', ...again]).at(-1)).toBe('fault')
  })

  it('counts persistence in samples of the stream, within its bounds', () => {
    const settings = defaultDetectionSettings
    const samplesAt = (intervalMs: number) =>
      machineLimits({ settings, periodMs: 86_400_000 }, intervalMs).persistenceSamples
    expect([1000, 300_000, 3_600_000].map(samplesAt)).toEqual([60, 24, 10])
    expect(machineLimits({ settings: { ...settings, persistenceMs: 60_000 } }, 10_000)).toEqual({
      persistenceSamples: 6,
      clearSamples: 6,
    })
  })
})
