/**
 * How a request wants its entities shown: format, projection and system attributes from its parameters, applied to
 * one entity at a time (GS CIM 009, 4.5.4, 4.5.20 and 6.3.7). A request without wishes gets the stored text.
 */
import type { EntityView } from '#broker/types.ts'
import type { Context } from '#ngsi-ld/context.ts'
import { languageRanges } from '#ngsi-ld/language.ts'
import { checkName } from '#ngsi-ld/name.ts'
import { badRequestData, invalidRequest } from '#ngsi-ld/problem.ts'
import { type Format, type RenderOptions, renderEntity } from '#ngsi-ld/representation.ts'
import { listOf, optionsOf, type Parameters } from './negotiate.ts'

/** Parameters that this file reads. */
export const renderingParameters = [
  'options',
  'format',
  'attrs',
  'pick',
  'omit',
  'lang',
  'datasetId',
] as const

const formats: Readonly<Record<string, Format>> = {
  normalized: 'normalized',
  concise: 'concise',
  simplified: 'simplified',
  keyValues: 'simplified',
}
const knownOptions = [...Object.keys(formats), 'sysAttrs']

export interface Rendering {
  /** Canonical names that `attrs` lists. */
  readonly attrs: ReadonlySet<string> | undefined
  /** JSON text of an entity without @context; undefined when nothing of it is to be shown. */
  text(view: EntityView): string | undefined
}

const asStored: Rendering = { attrs: undefined, text: (view) => view.text() }

/**
 * @param context names the members of the parameters; `shown` those of the answer.
 * @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data
 */
export function renderingOf(parameters: Parameters, context: Context, shown: Context = context): Rendering {
  if (parameters.size === 0 && shown.isCore) return asStored
  const { attrs, pick, omit, ...others } = wishesOf(parameters, context)
  const options: RenderOptions = { context: shown, attrs, pick, omit, ...others }
  const projects = attrs !== undefined || pick !== undefined || omit !== undefined
  const isStored =
    shown.isCore &&
    !projects &&
    options.format === 'normalized' &&
    !options.sysAttrs &&
    !options.lang &&
    !options.datasetId
  if (isStored) return { attrs, text: (view) => view.text() }
  return {
    attrs,
    text(view) {
      const entity = view.entity()
      if (attrs !== undefined && !Object.keys(entity).some((name) => attrs.has(name))) return undefined
      const rendered = renderEntity(entity, options.sysAttrs === true ? view.times() : undefined, options)
      return projects && Object.keys(rendered).length === 0 ? undefined : JSON.stringify(rendered)
    },
  }
}

function wishesOf(parameters: Parameters, context: Context): Omit<RenderOptions, 'context'> {
  if (parameters.size === 0) return { format: 'normalized' }
  const lang = parameters.get('lang')
  const pick = namesOf(parameters, 'pick', context)
  const omit = namesOf(parameters, 'omit', context)
  const attrs = namesOf(parameters, 'attrs', context)
  if (attrs !== undefined && (pick !== undefined || omit !== undefined)) {
    throw invalidRequest('attrs goes with neither pick nor omit')
  }
  const options = optionsOf(parameters, knownOptions)
  return {
    format: formatOf(options, parameters.get('format')),
    sysAttrs: options.has('sysAttrs') || undefined,
    attrs,
    pick,
    omit,
    lang: lang === undefined ? undefined : languageRanges(lang),
    datasetId: setOf(listOf(parameters, 'datasetId')),
  }
}

/** `format` wins over `options`, where several formats contradict each other. */
function formatOf(options: ReadonlySet<string>, format: string | undefined): Format {
  if (format !== undefined) {
    const found = formats[format]
    if (found === undefined)
      throw invalidRequest(`format ${format} is none of ${Object.keys(formats).join(', ')}`)
    return found
  }
  const asked = new Set([...options].flatMap((option) => formats[option] ?? []))
  if (asked.size > 1) throw invalidRequest('options name more than one format')
  return [...asked][0] ?? 'normalized'
}

/** Comma list of names, canonical; pick and omit may use `|` as well. */
function namesOf(parameters: Parameters, name: string, context: Context): ReadonlySet<string> | undefined {
  const text = parameters.get(name)
  if (text === undefined) return undefined
  const terms = text.split(name === 'attrs' ? ',' : /[,|]/).map((term) => term.trim())
  if (terms.includes('')) throw badRequestData('has an empty name', name)
  return new Set(terms.map((term) => checkName(context.expand(term), name)))
}

function setOf(items: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return items === undefined ? undefined : new Set(items)
}
