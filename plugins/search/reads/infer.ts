/**
 * Computes fields by rules of the schema. If `if` (Type.field=value) holds, the field contains the entities
 * that `then` (Type.field*.field=value) finds; `*` marks the list whose members are returned. An invalid rule
 * finds nothing. A place may come from a linked entity.
 */

import {
  type EntityJson,
  instanceOf,
  instancesOf,
  memberOf,
  targetsOf,
  toPlace,
} from '#plugins/search/schema/entity-values.ts'
import type { FieldModel, Model, TypeModel } from '#plugins/search/schema/model.ts'
import type { Reads } from './reads.ts'

interface Path {
  readonly steps: readonly string[]
  /** Number of steps up to the marked list. */
  readonly taken: number
  readonly value: string | undefined
}

export type Inference = ReturnType<typeof createInference>

/** Follows links and rules with the reads of an operation. */
export function createInference(model: Model, reads: Reads) {
  /** The entities of a link; if there are none, those that its rules find. */
  async function members(
    { name }: TypeModel,
    entity: EntityJson,
    field: FieldModel,
  ): Promise<readonly EntityJson[]> {
    const direct = await linked(entity, field)
    if (field.rules.length === 0 || direct.length > 0) return direct
    const found = await Promise.all(field.rules.map((rule) => applied(name, entity, rule)))
    return [...new Map(found.flat().map((one) => [one.id, one])).values()]
  }

  async function applied(
    type: string,
    entity: EntityJson,
    rule: FieldModel['rules'][number],
  ): Promise<readonly EntityJson[]> {
    const then = parsePath(rule.find)
    if (then === undefined) return []
    if (rule.when !== undefined && !(await holds(type, entity, parsePath(rule.when)))) return []
    let at = type
    let members: readonly EntityJson[] = [entity]
    for (const step of then.steps.slice(0, then.taken)) {
      const field = model.types.get(at)?.fields.get(step)
      if (field?.kind !== 'link') return []
      members = (await Promise.all(members.map((one) => linked(one, field)))).flat()
      at = field.of
    }
    const rest = { steps: then.steps.slice(then.taken), taken: 0, value: then.value }
    if (rest.steps.length === 0) return members
    const isTaken = await Promise.all(members.map((one) => holds(at, one, rest)))
    return members.filter((_, index) => isTaken[index])
  }

  async function holds(type: string, entity: EntityJson, path: Path | undefined): Promise<boolean> {
    if (path === undefined) return false
    const values = await valuesAt(type, entity, path.steps)
    return path.value === undefined ? values.length > 0 : values.includes(path.value)
  }

  /** The values at the end of a path as texts; for links, the ids. */
  async function valuesAt(
    type: string,
    entity: EntityJson,
    [step, ...rest]: readonly string[],
  ): Promise<readonly string[]> {
    const field = model.types.get(type)?.fields.get(step ?? '')
    if (step === 'id') return [entity.id]
    if (field === undefined) return []
    if (field.kind !== 'link') {
      return instancesOf(entity, field.uris).flatMap((one) =>
        [memberOf(one, field.member)].flat().map(String),
      )
    }
    if (rest.length === 0 && field.uris.length > 0) return targetsOf(entity, field.uris)
    const members = await linked(entity, field)
    if (rest.length === 0) return members.map(({ id }) => id)
    return (await Promise.all(members.map((one) => valuesAt(field.of, one, rest)))).flat()
  }

  /** The entities that a link leads to, whichever end holds it. */
  async function linked(entity: EntityJson, field: FieldModel): Promise<readonly EntityJson[]> {
    const targets = targetsOf(entity, field.uris).filter((id) => id !== noQualityYet)
    if (targets.length > 0) {
      const found = await Promise.all(targets.map((id) => reads.byId(field.of, id)))
      return found.filter((one) => one !== undefined)
    }
    return field.inverse === undefined ? [] : reads.pointingTo(field, entity.id)
  }

  /**
   * The entity's own place, or that of the entity that `from` links to.
   * @param seen visited ids, because links may be circular.
   */
  async function placeOf(
    type: TypeModel,
    entity: EntityJson,
    field: FieldModel,
    seen: Set<string> = new Set(),
  ): Promise<object | null> {
    const own = toPlace(instanceOf(entity, field.uris))
    const by = type.fields.get(field.from ?? '')
    const target = by?.kind === 'link' ? model.types.get(by.of) : undefined
    const there = target?.fields.get(field.name)
    if (own !== null || by === undefined || there?.kind !== 'place' || seen.has(entity.id)) return own
    seen.add(entity.id)
    for (const one of await linked(entity, by)) {
      const found = await placeOf(target!, one, there, seen)
      if (found !== null) return found
    }
    return null
  }

  return Object.freeze({ members, placeOf })
}

/** Placeholder target of qoi:hasQuality in data of the original platform; no entity has this id. */
const noQualityYet = 'urn:ngsi-ld:Quality:noqualityyet'

/** Parses `Type.a*.b=value`; a value that is an IRI may contain dots. */
function parsePath(text: string | undefined): Path | undefined {
  const [, path, value] = /^\s*[\w-]+\.([\w.*-]+?)\s*(?:=\s*(.+?)\s*)?$/.exec(text ?? '') ?? []
  if (path === undefined) return undefined
  const marked = path.split('.')
  const taken = marked.findLastIndex((step) => step.endsWith('*')) + 1
  const steps = marked.map((step) => step.replace(/\*$/, ''))
  return { steps, taken: taken === 0 ? steps.length : taken, value }
}
