/** Which abnormal samples raise an alarm. */
import { expect, it } from 'vitest'
import { createAlarmDiscipline } from './alarm-discipline.ts'

it('reports a sample from the score on, and none of the quiet samples after it', () => {
  const discipline = createAlarmDiscipline({ quietSamples: 2, alarmScore: 5 })
  expect([4.9, 5, 9, 9, 9, 9].map(discipline.take)).toEqual([false, true, false, false, true, false])
})
