/**
 * A virtual sensor's model as a linear model, which can be stored as an ONNX model. With values of all
 * sources, most families are linear in a row of features; trees, square roots and daily profiles are not.
 * Pure.
 */
import { hash } from 'node:crypto'
import { GatewayError } from '#base/register/errors.ts'
import type { LinearModel } from '#contract'
import type { Member } from './members.ts'
import { blendedValue } from './prediction.ts'
import { columnsOf } from './predictors.ts'
import type { VirtualSensorModel } from './virtual-sensor-model.ts'

const isLinear = (member: Member): boolean =>
  ['inverse-distance', 'nearest', 'kriging'].includes(member.kind) ||
  (member.kind === 'linear' && !member.isRoot)

/**
 * @param id of the virtual sensor.
 * @throws virtual-sensors.failed if a family of the model is not linear
 */
export function linearExportOf(id: string, model: VirtualSensorModel): LinearModel {
  const others = model.members.filter(({ member }) => !isLinear(member)).map(({ family }) => family)
  if (others.length > 0)
    throw new GatewayError(
      'virtual-sensors.failed',
      `a model can be exported if all its families are linear (nearest, inverse distance, kriging, ridge ` +
        `without root); this one also uses ${others.join(' and ')}. Its predictions are in its stream`,
    )
  const { width } = columnsOf(model.sources.length)
  const predicted = (row: Float64Array): number => blendedValue(model, row, 0)
  const intercept = predicted(new Float64Array(width))
  const unit = (column: number): Float64Array => new Float64Array(width).fill(1, column, column + 1)
  const coefficients = Array.from({ length: width }, (_, column) => predicted(unit(column)) - intercept)
  // Rows of equal values and of different ones.
  const examples = [1, 10].map((step) => Array.from({ length: width }, (_, column) => 1 + (column % step)))
  return {
    name: `vs-${hash('sha256', id).slice(0, 16)}`,
    version: '1',
    kind: 'virtual-sensor',
    coefficients,
    intercept,
    licence: 'of the site whose data it was fitted to',
    card: cardOf(id, model),
    examples,
  }
}

function cardOf(id: string, { family, sources, slotMs, rows, error }: VirtualSensorModel): string {
  return [
    `# Model of ${id}`,
    '',
    `Fitted by this gateway: family ${family}, ${rows} slots of ${slotMs / 1000} s, root mean square error`,
    `${error} in blocked validation. It is valid while all sources have a value.`,
    '',
    'Inputs: the values of the sources in a slot, their values one slot earlier, then sine and cosine of the',
    'time of the day (UTC) for one, two and three periods a day. Sources, in order:',
    '',
    ...sources.map((source) => `- ${source}`),
    '',
  ].join('\n')
}
