/**
 * Secrets in data that clients store: user names and passwords in addresses, and values of headers that carry
 * credentials. Responses replace each secret with a placeholder. A client that sends the placeholder back
 * keeps the stored value, but only for the address it was stored for. So nobody can redirect a secret that
 * they do not know. Pure.
 */
import { badRequestData } from './ngsi-ld-problem.ts'

/** Placeholder for a secret in every response. */
export const hidden = '***'

/** A header, or a parameter of a notifier. */
export interface KeyValue {
  readonly key: string
  readonly value: string
}

/** An address with the headers that are sent to it. */
export interface Addressed {
  readonly uri: string
  readonly pairs?: readonly KeyValue[] | undefined
}

/** Names of headers and query parameters whose values are credentials, in any letter case. */
const secretName = /authori[sz]ation|cookie|token|key|secret|passw|passphrase|credential|signature|jwt/i
/**
 * Short names of credentials that also occur within ordinary words, such as `X-Author`: only whole words
 * match.
 */
const secretWord = /^(?:o?auth\d?|authn|pwd|pass|bearer|(?:j|php|asp|cgi)?sess(?:ion)?(?:id)?|sid|sig)$/i
/** Word boundaries in `X-Auth`, `x_auth`, `xAuth` and `XAuth`. */
const wordBounds = /[^A-Za-z\d]+|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/
/**
 * Values that are credentials under any name [RFC 9110 11.4]: an authentication scheme followed by more text
 * (schemes of the IANA registry and of individual services), and bare JSON web tokens.
 */
const secretValue =
  /^(?:(?:basic|bearer|concealed|digest|dpop|gnap|hoba|mutual|negotiate|ntlm|oauth|privatetoken|scram-sha-\d+|vapid|hawk|token|jwt|api-?key|apitoken|access-?token|shared(?:key(?:lite)?|accesssignature)|aws4-hmac-sha256|signature)[\s=]|eyJ[\w-]+\.[\w-]+\.)/i

const namesSecret = (name: string): boolean =>
  secretName.test(name) || name.split(wordBounds).some((word) => secretWord.test(word))

/** Means "pass on the header of the request"; it is not a secret itself (GS CIM 009, 4.3.6.6). */
const asRequested = 'urn:ngsi-ld:request'

const isSecret = ({ key, value }: KeyValue): boolean =>
  value !== asRequested && (namesSecret(key) || secretValue.test(value))

/** Pairs with their secrets hidden, as a response shows them. */
export function shownPairs<P extends KeyValue>(pairs: readonly P[] | undefined): readonly P[] | undefined {
  return pairs?.map((pair) => (isSecret(pair) ? { ...pair, value: hidden } : pair))
}

/** Browsers and Node accept any number of slashes, of either kind, before the authority. */
const userInfo = /^([a-z][a-z\d+.-]*:[/\\]*)[^/?#\\]*@/i
const parameter = /([?&;])([^=&;#]+)=([^&;#]+)/g

/** An address with its user name, password and secret query parameters hidden, as a response shows it. */
export function shownAddress(uri: string): string {
  return uri
    .replace(userInfo, `$1${hidden}@`)
    .replace(parameter, (all, separator: string, name: string) =>
      namesSecret(name) ? `${separator}${name}=${hidden}` : all,
    )
}

/**
 * Replaces placeholders in a client's input with the stored secrets.
 * @param stored the previous state; undefined for something new
 * @throws ngsi-ld.bad-request-data for a placeholder without a stored secret at this address
 */
export function withStoredSecrets(
  given: Addressed,
  stored: Addressed | undefined,
  fields: { readonly uri: string; readonly pairs: string },
): Addressed {
  const isSame = stored !== undefined && given.uri === shownAddress(stored.uri)
  const uri = isSame ? stored.uri : given.uri
  if (!isSame && uri.includes(hidden) && shownAddress(uri.replaceAll(hidden, 'x')) === shownAddress(uri))
    throw unknownSecret(fields.uri)
  const isThere = stored !== undefined && originOf(stored.uri) === originOf(uri)
  const left = isThere ? (stored.pairs ?? []).filter(isSecret) : []
  const pairs = given.pairs?.map((pair) => {
    if (pair.value !== hidden) return pair
    const at = left.findIndex(({ key }) => key.toLowerCase() === pair.key.toLowerCase())
    if (at !== -1) return { ...pair, value: left.splice(at, 1)[0]!.value }
    if (isSecret(pair)) throw unknownSecret(`${fields.pairs}.${pair.key}`)
    return pair
  })
  return { uri, pairs }
}

/**
 * Refuses to send stored secrets to an address other than the one they were stored for.
 * @throws ngsi-ld.bad-request-data
 */
export function assertSecretsStay(before: Addressed, after: Addressed, field: string): void {
  if (originOf(before.uri) === originOf(after.uri)) return
  if (before.pairs?.some(isSecret) === true)
    throw badRequestData(
      'changes the address that stored secrets are sent to; send them again in the same request',
      field,
    )
}

const unknownSecret = (field: string) =>
  badRequestData(
    `${hidden} stands for a secret stored for this address, but none is stored; send the secret itself`,
    field,
  )

/** The protocol and host of an address. */
function originOf(uri: string): string {
  const url = URL.parse(uri)
  return url === null || url.host === '' ? uri : `${url.protocol}//${url.host}`
}
