/**
 * The kinds of value of settings: valibot schemas with a phrase, as metadata, that describes the expected
 * value in error messages. A kind checks one value; rules between settings are checked after loading.
 */
import { isIP } from 'node:net'
import * as v from 'valibot'
import { cronWords, isCron } from '#base/time/schedule.ts'

/** Adds the phrase as metadata; it completes "expected ...". */
const described = <S extends v.GenericSchema>(expected: string, schema: S): S =>
  v.pipe(schema, v.metadata({ expected })) as unknown as S

export const wholeNumber = (least: number, most: number, unit = '') =>
  described(
    `a whole number from ${least} to ${most} ${unit}`.trimEnd(),
    v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most)),
  )

export const finiteNumber = () => described('a number', v.pipe(v.number(), v.finite()))

export const above0 = (unit: string) =>
  described(`a number of ${unit} greater than 0`, v.pipe(v.number(), v.finite(), v.gtValue(0)))

/** A share, 0 to 1. */
export const share = () => described('a number from 0 to 1', v.pipe(v.number(), v.minValue(0), v.maxValue(1)))

export const seconds = () => above0('seconds')

export const flag = () => described('true or false', v.boolean())

export const oneOf = <const T extends readonly [string, ...string[]]>(...names: T) =>
  described(`one of ${names.join(', ')}`, v.picklist(names))

/** Like `oneOf`, but also accepts numbers, since YAML parses `1.9` as a number. */
export const versionOf = <const T extends readonly [string, ...string[]]>(...names: T) =>
  described(
    `one of ${names.join(', ')}`,
    v.union([
      v.picklist(names),
      v.pipe(
        v.number(),
        v.check((number) => names.includes(String(number))),
        v.transform((number): T[number] => String(number)),
      ),
    ]),
  )

const oneLine = (most: number) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(most), v.regex(/^[^\u0000-\u001f\u007f]*$/))

/** A line of text. A number must be quoted, since YAML would drop its leading zeros. */
export const text = (most = 1024) =>
  described(`text of 1 to ${most} characters, in quotes if it looks like a number`, oneLine(most))

export const fileNameWords = 'the name of a file'
export const fileName = () => described(fileNameWords, oneLine(4096))

/** A recurring time, or none. */
export const schedule = () =>
  described(
    `${cronWords}, or off`,
    v.pipe(
      v.string(),
      v.check((text) => text === 'off' || isCron(text)),
    ),
  )

/** A name or address to bind, without scheme and port. */
export const hostName = () =>
  described('a host name or address without scheme and port', v.pipe(v.string(), v.check(isHost)))

function isHost(value: string): boolean {
  return isIP(value) !== 0 || /^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$/.test(value)
}

/** A TCP port to listen on: 0 lets the system choose one, `off` opens none. */
export const listenPort = () =>
  described(
    'a port from 1 to 65535, 0 for any free one, or off',
    v.union([v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65_535)), v.literal('off')]),
  )

export const listOf = <S extends v.GenericSchema>(what: string, most: number, item: S) =>
  described(`a list of at most ${most} ${what}`, v.pipe(v.array(item), v.maxLength(most)))

export const filledListOf = <S extends v.GenericSchema>(what: string, most: number, item: S) =>
  described(`a list of 1 to ${most} ${what}`, v.pipe(v.array(item), v.minLength(1), v.maxLength(most)))

/** A group of settings, each with its name. */
export const groupOf = <E extends v.ObjectEntries>(what: string, entries: E) =>
  described(what, v.strictObject(entries))

/** A group with names chosen by the operator, such as device ids. */
export const mapOf = <S extends v.GenericSchema>(what: string, each: S) =>
  described(what, v.record(text(), each))

/** The address of another MQTT broker. Credentials have settings of their own, so that no log shows them. */
export const brokerUrl = () =>
  described(
    'mqtt://host[:port] or mqtts://host[:port], without user name and password',
    v.pipe(
      v.string(),
      v.check((value) => isBrokerUrl(value)),
    ),
  )

/** The address of a broker: MQTT, AMQP or NGSI-LD. */
export const sourceUrl = () =>
  described(
    'mqtt://host[:port], or mqtts, amqp, amqps, http or https, without user name, password and path',
    v.pipe(
      v.string(),
      v.check((value) => isBrokerUrl(value, /^(?:mqtt|amqp|http)s?:$/)),
    ),
  )

function isBrokerUrl(value: string, protocols = /^mqtts?:$/): boolean {
  const url = URL.parse(value)
  if (url === null || !protocols.test(url.protocol) || url.hostname === '') return false
  return url.username === '' && url.password === '' && /^\/?$/.test(url.pathname) && url.search === ''
}

/** An NGSI-LD scope (GS CIM 009, 4.18). */
export const scope = () =>
  described('a path such as /site-7', v.pipe(v.string(), v.maxLength(1024), v.regex(scopePath)))

const scopePath = /^(?:\/[\p{L}\p{N}_-]+)+$/u

/** An address of this gateway, without a path. */
export const httpUrl = () =>
  described('http://host[:port] or https://host[:port]', v.pipe(v.string(), v.check(isHttpOrigin)))

function isHttpOrigin(value: string): boolean {
  const url = URL.parse(value)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') return false
  return url.username === '' && url.password === '' && /^\/?$/.test(url.pathname) && url.search === ''
}

/** The address of an NGSI-LD broker, with or without /ngsi-ld/v1; the value always ends with /ngsi-ld/v1. */
export const brokerBase = () =>
  described(
    'http://host[:port][/path] or https://host[:port][/path]',
    v.pipe(v.string(), v.check(isBrokerBase), v.transform(toBrokerBase)),
  )

function isBrokerBase(value: string): boolean {
  const url = URL.parse(value)
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === '') return false
  if (/\/ngsi-ld\/v1\/+[^/]/i.test(url.pathname)) return false
  return url.username === '' && url.password === '' && url.search === '' && url.hash === ''
}

/** The base URL of an HTTP server; a trailing slash is removed. */
export const baseUrl = () =>
  described(
    'http://host[:port][/path] or https://host[:port][/path]',
    v.pipe(
      v.string(),
      v.check(isBrokerBase),
      v.transform((value) => value.replace(/\/+$/, '')),
    ),
  )

/** The URL of a callback, as it is sent to brokers. */
export const callbackUrl = () =>
  described(
    'http://host[:port][/path] or https://host[:port][/path]',
    v.pipe(v.string(), v.check(isBrokerBase)),
  )

/** A server of a protocol: host[:port], or a URL without credentials; the value is always a URL. */
export const serverAddress = (scheme: 'amqp' | 'redis') =>
  described(
    `host[:port], or ${scheme}[s]://host[:port], without user name and password`,
    v.pipe(
      v.string(),
      v.transform((value) => (value.includes('://') ? value : `${scheme}://${value}`)),
      v.check((value) => isBrokerUrl(value, scheme === 'amqp' ? /^amqps?:$/ : /^rediss?:$/)),
    ),
  )

/** Like `baseUrl`, but also accepts host:port. */
export const ownAddress = () =>
  described(
    'host:port, or http[s]://host[:port][/path]',
    v.pipe(
      v.string(),
      v.transform((value) => withScheme(value).replace(/\/+$/, '')),
      v.check(isBrokerBase),
    ),
  )

/** Like `backend`, but also accepts host:port. */
export const brokerAddress = <const T extends readonly [string, ...string[]]>(...names: T) =>
  described(
    `one of ${names.join(', ')}, or host:port or http[s]://host[:port][/path] of a broker`,
    v.union([
      v.picklist(names),
      v.pipe(
        v.string(),
        v.regex(/[:.]/),
        v.transform(withScheme),
        v.check(isBrokerBase),
        v.transform(toBrokerBase),
      ),
    ]),
  )

const withScheme = (value: string): string => (value.includes('://') ? value : `http://${value}`)

/** The name of a component of this gateway, or the address of another broker as in `brokerBase`. */
export const backend = <const T extends readonly [string, ...string[]]>(...names: T) =>
  described(
    `one of ${names.join(', ')}, or http[s]://host[:port][/path] of a broker`,
    v.union([v.picklist(names), brokerBase()]),
  )

const toBrokerBase = (value: string): string =>
  `${value.replace(/\/+$/, '').replace(/\/ngsi-ld(\/v1)?$/i, '')}/ngsi-ld/v1`

/** A GeoJSON geometry, longitude first (RFC 7946). */
export const geometry = () =>
  described(
    'a GeoJSON geometry with type and coordinates',
    // Not `strictObject`, which is a group of settings.
    v.objectWithRest(
      {
        type: v.picklist(['Point', 'MultiPoint', 'LineString', 'MultiLineString', 'Polygon', 'MultiPolygon']),
        coordinates: v.array(v.unknown()),
      },
      v.never(),
    ),
  )

/** A name that is usable in paths. */
export const label = () =>
  described(
    'a name of 1 to 64 letters, digits, - and _',
    v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/)),
  )

/** A name of a model, which is also the name of its folder. */
export const modelName = () =>
  described(
    'a name of 1 to 64 lower-case letters, digits and -, beginning with a letter',
    v.pipe(v.string(), v.regex(/^[a-z][a-z0-9-]{0,63}$/)),
  )

/** A SHA-256 digest in lower-case hexadecimal digits. */
export const digest = () =>
  described('64 hexadecimal digits in lower case', v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)))

/** The shape of a tensor whose first dimension counts rows. */
export const tensorShape = (most: number) =>
  described(
    `a list of null, for the number of rows, and 1 to 4 whole numbers from 1 to ${most}`,
    v.pipe(
      v.array(v.nullable(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(most)))),
      v.minLength(2),
      v.maxLength(5),
      v.check((sizes) => sizes.indexOf(null) === 0 && sizes.lastIndexOf(null) === 0),
    ),
  )

/** A least and a greatest number. */
export const range = () =>
  described(
    '[least, greatest]',
    v.pipe(
      v.strictTuple([v.pipe(v.number(), v.finite()), v.pipe(v.number(), v.finite())]),
      v.check(([least, greatest]) => least <= greatest),
    ),
  )

export const cron = () => described(cronWords, v.pipe(v.string(), v.check(isCron)))

export const topicFilter = () =>
  described(
    'an MQTT topic filter such as site/+/temperature or site/#',
    v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.check(isTopicFilter)),
  )

/** MQTT 3.1.1, 4.7: `#` only as the last level, `+` only as a whole level. */
function isTopicFilter(value: string): boolean {
  const levels = value.split('/')
  return levels.every(
    (level, i) => level === '+' || (level === '#' && i === levels.length - 1) || !/[+#\u0000]/.test(level),
  )
}

const degrees = (most: number) => v.pipe(v.number(), v.minValue(-most), v.maxValue(most))

/** A position or a Point, longitude first (RFC 7946); the value is always a Point. */
export const place = () => {
  const position = v.union([
    v.strictTuple([degrees(180), degrees(90)]),
    v.strictTuple([degrees(180), degrees(90), v.pipe(v.number(), v.finite())]),
  ])
  const point = v.strictObject({ type: v.literal('Point'), coordinates: position })
  return described(
    '[longitude, latitude] in degrees, or a GeoJSON Point',
    v.pipe(
      v.union([position, point]),
      v.transform((given) => ({
        type: 'Point' as const,
        coordinates: 'type' in given ? given.coordinates : given,
      })),
    ),
  )
}
