/**
 * Decides how entities are shown: format, projection, linked entities, GeoJSON and system attributes from the
 * parameters (GS CIM 009, 4.5.4, 4.5.16, 4.5.20, 4.5.23, 4.21 and 6.3.7). Without such parameters the stored
 * text is sent.
 */
import { limits } from '#base/limits/limits.ts'
import type { EntityView } from '#broker/state/stored-entity.ts'
import { optionsOf } from '#http/request/negotiate.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import { mentionsExpiry } from '#ngsi-ld/entity/expiry.ts'
import { checkLanguages, languageRanges } from '#ngsi-ld/entity/language.ts'
import { type Joining, linkedOf, type Projections, projected, renderInline } from '#ngsi-ld/query/join.ts'
import type { FollowedEntity } from '#ngsi-ld/query/query-match.ts'
import { listOf, type Parameters, wholeNumber } from '#ngsi-ld/query/url-parameters.ts'
import type { Amendment } from '#ngsi-ld/representation/conformance.ts'
import { type FeatureOptions, toFeature } from '#ngsi-ld/representation/geojson.ts'
import { depthOf, type Projection, parseProjection } from '#ngsi-ld/representation/projection.ts'
import { type Format, type RenderOptions, renderEntity } from '#ngsi-ld/representation/representation.ts'
import { checkListedName, checkName, checkUri } from '#ngsi-ld/values/names.ts'
import { badRequestData, invalidRequest, tooComplex } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** Parameters that this file reads. */
export const renderingParameters = [
  'options',
  'format',
  'attrs',
  'pick',
  'omit',
  'lang',
  'datasetId',
  'geometryProperty',
  'join',
  'joinLevel',
  'containedBy',
] as const

const formats: Readonly<Record<string, Format>> = {
  normalized: 'normalized',
  concise: 'concise',
  simplified: 'simplified',
  keyValues: 'simplified',
}
const knownOptions = [...Object.keys(formats), 'sysAttrs']

export interface Rendering {
  /** Full IRIs of the names in `attrs`. */
  readonly attrs: ReadonlySet<string> | undefined
  /** JSON text of an entity without @context; undefined if nothing of it is shown. */
  text(view: EntityView): string | undefined
  /** Whether a response depends on more than one entity. */
  readonly joins?: boolean
  /** Texts of linked entities that follow the entities; undefined if they are not appended. */
  linked?: (views: readonly EntityView[]) => readonly string[]
}

/** Inputs of a rendering beside the parameters. */
export interface RenderingPorts {
  /** The context of the parameters. */
  readonly context: Context
  /** The context of the response. */
  readonly shown: Context
  /** Finds linked entities. */
  readonly follow: (id: string, types: readonly string[]) => EntityView | undefined
  readonly isGeoJson?: boolean | undefined
  /** Converts an entity to an earlier version of the standard. */
  readonly amendment?: Amendment | undefined
}

/**
 * The stored text, unless a part of it has expiresAt: a system attribute, which is shown only on request
 * (4.22).
 */
function storedText(view: EntityView, context: Context): string {
  const text = view.text()
  if (view.mayExpire === false || !mentionsExpiry(text)) return text
  return JSON.stringify(renderEntity(view.entity(), undefined, { context, format: 'normalized' }))
}

const asStored = (context: Context): Rendering => ({
  attrs: undefined,
  text: (view) => storedText(view, context),
})

/** @throws ngsi-ld.invalid-request, ngsi-ld.bad-request-data */
export function renderingOf(parameters: Parameters, ports: RenderingPorts): Rendering {
  const { context, shown, isGeoJson, amendment } = ports
  if (parameters.size === 0 && shown.isCore && isGeoJson !== true && amendment === undefined)
    return asStored(shown)
  const { projections, ...shape } = renderOptionsOf(parameters, context)
  const options = projected({ context: shown, ...shape, projections }, projections)
  const { attrs } = options
  const feature = featureOf(parameters, context, ports)
  const seen = seenThrough(amendment, shown)
  const follow: Joining['follow'] = (id, types) => {
    const found = ports.follow(id, types)
    return found && seen(found)
  }
  const join = joiningOf(parameters, projections, follow)
  const projects = attrs !== undefined || options.pick !== undefined || options.omit !== undefined
  const isStored =
    shown.isCore &&
    amendment === undefined &&
    !projects &&
    options.format === 'normalized' &&
    !options.sysAttrs &&
    !options.lang &&
    !options.datasetId &&
    join?.mode !== 'inline' &&
    feature === undefined
  const textOf = (
    found: FollowedEntity,
    wanted: RenderOptions,
    inline: Joining | undefined,
  ): string | undefined => {
    const source = seen(found)
    const entity = source.entity()
    if (wanted.attrs !== undefined && !Object.keys(entity).some((name) => wanted.attrs!.has(name)))
      return undefined
    const rendered =
      inline === undefined
        ? renderEntity(entity, wanted.sysAttrs === true ? source.times() : undefined, wanted)
        : renderInline(source, wanted, inline)
    if (Object.keys(rendered).length === 0) return undefined
    return JSON.stringify(feature === undefined ? rendered : toFeature(entity, rendered, feature))
  }
  const text = (view: EntityView): string | undefined =>
    isStored ? storedText(view, shown) : textOf(view, options, join?.mode === 'inline' ? join : undefined)
  if (join?.mode !== 'flat') return { attrs, text, joins: join !== undefined }
  return {
    attrs,
    text,
    joins: true,
    linked: (views) =>
      linkedOf(views, options, join).flatMap(
        ({ source, options: wanted }) => textOf(source, wanted, undefined) ?? [],
      ),
  }
}

/** Converts entities to the requested version of the standard. */
function seenThrough(
  amendment: Amendment | undefined,
  { compact }: Context,
): (source: FollowedEntity) => FollowedEntity {
  if (amendment === undefined) return (source) => source
  return (source) => ({
    entity: () => amendment.entity(source.entity(), compact),
    times: () => source.times(),
  })
}

/** GeoJSON options, if the response is GeoJSON (6.3.15). */
function featureOf(
  parameters: Parameters,
  context: Context,
  { isGeoJson }: RenderingPorts,
): FeatureOptions | undefined {
  const property = parameters.get('geometryProperty')
  if (isGeoJson !== true) {
    if (property !== undefined)
      throw badRequestData('is allowed only with Accept: application/geo+json', 'geometryProperty')
    return undefined
  }
  return {
    geometryProperty:
      property === undefined ? 'location' : checkName(context.expand(property), 'geometryProperty'),
    datasetId: datasetsOf(parameters),
  }
}

/** How linked entities are included (4.5.23); undefined if they are not. */
function joiningOf(
  parameters: Parameters,
  { pick, omit }: Projections,
  follow: Joining['follow'],
): Joining | undefined {
  const mode = parameters.get('join') ?? '@none'
  if (mode !== 'flat' && mode !== 'inline' && mode !== '@none')
    throw badRequestData('must be flat, inline or @none', 'join')
  const levels = wholeNumber(parameters, 'joinLevel')
  const containedBy = listOf(parameters, 'containedBy')?.map((id) => checkUri(id, 'containedBy'))
  const depth = Math.max(pick === undefined ? 0 : depthOf(pick), omit === undefined ? 0 : depthOf(omit))
  if (mode === '@none') {
    if (levels !== undefined) throw badRequestData('is allowed only with join', 'joinLevel')
    if (containedBy !== undefined) throw badRequestData('is allowed only with join', 'containedBy')
    if (depth > 0) throw badRequestData('is required to pick or omit members of linked entities', 'join')
    return undefined
  }
  if (levels === 0) throw badRequestData('must be above 0', 'joinLevel')
  if (depth > (levels ?? 1))
    throw badRequestData('must be at least the depth used in pick or omit', 'joinLevel')
  if ((levels ?? 1) > limits.joinLevelsMax.value)
    throw tooComplex(`joinLevel is above ${limits.joinLevelsMax.value}`)
  return { mode, levels: levels ?? 1, containedBy: new Set(containedBy), follow }
}

function renderOptionsOf(
  parameters: Parameters,
  context: Context,
): Omit<RenderOptions, 'context' | 'projections'> & { readonly projections: Projections } {
  if (parameters.size === 0) return { format: 'normalized', projections: {} }
  const lang = parameters.get('lang')
  const projection = (name: 'pick' | 'omit'): Projection | undefined => {
    const text = parameters.get(name)
    return text === undefined ? undefined : parseProjection(text, context.expand, name)
  }
  const pick = projection('pick')
  const omit = projection('omit')
  const attrs = setOf(
    listOf(parameters, 'attrs')?.map((term) => checkListedName(context.expand(term), 'attrs')),
  )
  if (attrs !== undefined && (pick !== undefined || omit !== undefined))
    throw badRequestData('cannot be combined with pick or omit', 'attrs')
  const both = [...(pick?.names ?? [])].find((name) => omit?.names.has(name) && !omit.linked.has(name))
  if (both !== undefined) throw badRequestData(`${context.compact(both)} is also in pick`, 'omit')
  const options = optionsOf(parameters, knownOptions)
  return {
    format: formatOf(options, parameters.get('format')),
    sysAttrs: options.has('sysAttrs') || undefined,
    attrs,
    projections: { pick, omit },
    lang: lang === undefined ? undefined : languageRanges(checkLanguages(lang)),
    datasetId: datasetsOf(parameters),
  }
}

/** Requested datasets. @throws ngsi-ld.bad-request-data */
const datasetsOf = (parameters: Parameters): ReadonlySet<string> | undefined =>
  setOf(listOf(parameters, 'datasetId')?.map((id) => (id === '@none' ? id : checkUri(id, 'datasetId'))))

/** `format` takes precedence over `options`. */
function formatOf(options: ReadonlySet<string>, format: string | undefined): Format {
  if (format !== undefined) {
    const found = formats[format]
    if (found === undefined)
      throw badRequestData(`must be one of ${Object.keys(formats).join(', ')}`, 'format')
    return found
  }
  const requested = new Set([...options].flatMap((option) => formats[option] ?? []))
  if (requested.size > 1) throw invalidRequest('options name more than one format')
  return [...requested][0] ?? 'normalized'
}

function setOf(items: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return items === undefined ? undefined : new Set(items)
}
