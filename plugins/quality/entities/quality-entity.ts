/**
 * A quality as NGSI-LD: the attributes of the QoI entity of a stream (interface specification, QoI entity),
 * with canonical names. Pure. Figures that are not known are absent, or NA.
 */
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import type { Metric, Quality } from '#plugins/quality/measures/quality.ts'

const qoi = 'https://w3id.org/iot/qoi#'
const selvedge = 'urn:selvedge:ns:'

export const qualityType = `${qoi}Quality`
export const hasQuality = `${qoi}hasQuality`

/** The link of a stream without a quality, as sensor integrations of the platform set it. */
export const noQualityYet = 'urn:ngsi-ld:Quality:noqualityyet'

/** The id of the QoI entity of a stream. */
export const qualityId = (stream: string): string => `urn:ngsi-ld:QoI:${stream}`

/** Attributes by name, each with a text that is equal if and only if its figures are. */
export type Figures = ReadonlyMap<string, QualityFigure>

/** Names of all figures. */
export const figureNames: readonly string[] = [
  ...['plausibility', 'completeness', 'age', 'frequency', 'timeliness', 'artificiality', 'concordance'].map(
    (name) => qoi + name,
  ),
  ...['deliveryDelay', 'deliveryRatio', 'availability'].map((name) => selvedge + name),
]

export interface QualityFigure {
  readonly attribute: JsonObject
  /** Absolute and rated figures as text. */
  readonly absolute: string
  readonly rated: string
}

const notAvailable = 'NA'
/** UN/CEFACT code of seconds. */
const secondsCode = 'SEC'

/** @param options.enableNa whether figures that are not known are NA. */
export function figuresOf(quality: Quality, { enableNa = false } = {}): Figures {
  const { share, excused, age } = quality
  const na = enableNa ? notAvailable : undefined
  const metric = ({ absolute = na, rated = na }: Shown, details?: MetricDetails): QualityFigure | undefined =>
    metricOf({ absolute, rated }, details)
  const entries: (readonly [string, QualityFigure | undefined])[] = [
    [`${qoi}plausibility`, metric(quality.plausibility)],
    [
      `${qoi}completeness`,
      metric(quality.completeness, {
        more: {
          ...(share === undefined ? {} : { [`${selvedge}share`]: property(share) }),
          ...(excused === 0 ? {} : { [`${selvedge}excused`]: property(excused) }),
        },
        moreText: ` ${share ?? ''} ${excused || ''}`,
      }),
    ],
    [`${qoi}age`, metricOf({ absolute: age.absolute ?? na, rated: undefined }, { unitCode: secondsCode })],
    [`${qoi}frequency`, metric(quality.frequency, { unitCode: secondsCode })],
    [`${qoi}timeliness`, metric(quality.timeliness)],
    [`${qoi}artificiality`, metric(quality.artificiality)],
    [`${qoi}concordance`, metric(quality.concordance)],
    [`${selvedge}deliveryDelay`, plain(quality.deliveryDelay, secondsCode)],
    [`${selvedge}deliveryRatio`, plain(quality.deliveryRatio)],
    [`${selvedge}availability`, plain(quality.availability)],
  ]
  return new Map(entries.flatMap(([name, figure]) => (figure === undefined ? [] : [[name, figure] as const])))
}

/** A metric as it is written. */
type Shown = { readonly [name in keyof Metric]: Metric[name] | typeof notAvailable }

interface MetricDetails {
  readonly unitCode?: string
  /** Further sub-attributes, and their figures as text. */
  readonly more?: JsonObject
  readonly moreText?: string
}

/** A metric has the value NA, and its figures as sub-attributes. */
function metricOf(
  { absolute, rated }: Shown,
  { unitCode, more = {}, moreText = '' }: MetricDetails = {},
): QualityFigure | undefined {
  if (absolute === undefined && rated === undefined) return undefined
  return {
    attribute: {
      ...property(notAvailable),
      ...(absolute === undefined ? {} : { [`${qoi}hasAbsoluteValue`]: property(absolute, unitCode) }),
      ...(rated === undefined ? {} : { [`${qoi}hasRatedValue`]: property(rated) }),
      ...more,
    },
    absolute: `${absolute ?? ''}${moreText}`,
    rated: `${rated ?? ''}`,
  }
}

const plain = (value: number | undefined, unitCode?: string): QualityFigure | undefined =>
  value === undefined ? undefined : { attribute: property(value, unitCode), absolute: `${value}`, rated: '' }

const property = (value: number | string, unitCode?: string): JsonObject => ({
  type: 'Property',
  value,
  ...(unitCode === undefined || value === notAvailable ? {} : { unitCode }),
})
