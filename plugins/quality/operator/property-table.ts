/**
 * The table of usual properties with the changes of an operator. They have the form of the settings: an entry
 * replaces that of its label, and an empty one removes it.
 */
import { limits } from '#base/limits/limits.ts'
import type { Json } from '#contract'
import { isObject, own } from '#ngsi-ld/values/json.ts'
import { badRequestData, notFound } from '#ngsi-ld/values/ngsi-ld-problem.ts'
import { wholePattern } from '#plugins/quality/measures/plausibility.ts'
import {
  type UsualProperties,
  type UsualProperty,
  type UsualSettings,
  usualProperties,
  usualTable,
} from '#plugins/quality/measures/usual-properties.ts'
import type { Edits } from './edit-statements.ts'

type Entry = UsualSettings[string]

export interface PropertyTable extends UsualProperties {
  all(): readonly ({ readonly label: string } & Entry)[]
  /** Replaces or adds an entry. @throws badRequestData for an unusable one. */
  put(label: string, entry: Json): void
  /** @throws notFound */
  delete(label: string): void
}

export interface PropertyTablePorts {
  readonly settings: UsualSettings
  readonly edits: Edits
  /** The similarity that a label needs, 0..1. */
  readonly similarity: () => number
}

export function createPropertyTable({ settings, edits, similarity }: PropertyTablePorts): PropertyTable {
  const base = new Set(usualTable(settings).filter(isUsed).map(labelOf))
  let table = read()
  let usual: { readonly minimum: number; readonly table: UsualProperties } | undefined

  function read(): readonly UsualProperty[] {
    return usualTable({ ...settings, ...(Object.fromEntries(edits.all()) as UsualSettings) })
  }

  function change(work: () => void): void {
    work()
    table = read()
    usual = undefined
  }

  return Object.freeze({
    find(label) {
      const minimum = similarity()
      if (usual?.minimum !== minimum) usual = { minimum, table: usualProperties(table, minimum) }
      return usual.table.find(label)
    },
    all: () =>
      table.filter(isUsed).map(({ label, range, intervalMs }) => ({
        label,
        min: range?.min,
        max: range?.max,
        regexp: range?.regexp,
        updateInterval: intervalMs === undefined ? undefined : intervalMs / 1000,
      })),
    put(name, given) {
      const label = name.trim().toLowerCase()
      if (label === '' || label.length > labelMax)
        throw badRequestData(`must have 1 to ${labelMax} characters`, 'label')
      const entry = entryOf(given)
      const changes = edits.all()
      const max = limits.qualityPropertiesMax.value
      if (!changes.has(label) && changes.size >= max)
        throw badRequestData(`the table is full: it has ${max} changed entries`)
      change(() => edits.put(label, entry as Json))
    },
    delete(label) {
      if (!table.some((one) => isUsed(one) && one.label === label))
        throw notFound(`no usual property has the label ${label}`)
      change(() => (base.has(label) ? edits.put(label, {}) : edits.delete(label)))
    },
  } satisfies PropertyTable)
}

const isUsed = ({ range, intervalMs }: UsualProperty): boolean =>
  range !== undefined || intervalMs !== undefined
const labelOf = ({ label }: UsualProperty): string => label

const labelMax = 100
const regexpMax = 500

function entryOf(given: Json): Entry {
  if (!isObject(given)) throw badRequestData('must be an object with min, max, regexp or updateInterval')
  const regexp = own(given, 'regexp')
  const [min, max] = [numberIn(given, 'min'), numberIn(given, 'max')]
  const updateInterval = numberIn(given, 'updateInterval')
  if (regexp !== undefined) {
    if (typeof regexp !== 'string' || regexp.length > regexpMax)
      throw badRequestData(`must be a text of at most ${regexpMax} characters`, 'regexp')
    if ((min ?? max) !== undefined) throw badRequestData('excludes min and max', 'regexp')
    wholePattern(regexp)
  }
  if (min !== undefined && max !== undefined && min > max) throw badRequestData('must be at most max', 'min')
  if (updateInterval !== undefined && updateInterval <= 0)
    throw badRequestData('must be above 0 seconds', 'updateInterval')
  const entry = { min, max, regexp, updateInterval }
  if (Object.values(entry).every((member) => member === undefined))
    throw badRequestData('must have min, max, regexp or updateInterval')
  return entry
}

function numberIn(entry: { readonly [name: string]: Json }, name: string): number | undefined {
  const number = own(entry, name)
  if (number === undefined || typeof number === 'number') return number
  throw badRequestData('must be a number', name)
}
