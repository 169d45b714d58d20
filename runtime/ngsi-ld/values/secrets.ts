/**
 * Secrets in what clients store: user names and passwords in addresses, and the values of headers that carry credentials. No
 * answer shows them; a placeholder says that they are set. A client that sends the placeholder back keeps the stored value,
 * but only for the address it was stored for, so that nobody has a secret sent elsewhere without knowing it. Pure.
 */
import { badRequestData } from './ngsi-ld-problem.ts'

/** Stands for a secret in every answer. */
export const hidden = '***'

interface Pair {
  readonly key: string
  readonly value: string
}

/** An address with the headers that are sent there. */
export interface Addressed {
  readonly uri: string
  readonly pairs?: readonly Pair[] | undefined
}

/** Names of headers and query parameters whose values are credentials, in whatever case. */
const secretName = /authori[sz]ation|cookie|token|key|secret|passw|passphrase|credential|signature|jwt/i
/** The same for short words that are also parts of ordinary ones, such as `X-Author`: they count as whole words. */
const secretWord = /^(?:o?auth\d?|authn|pwd|pass|bearer|(?:j|php|asp|cgi)?sess(?:ion)?(?:id)?|sid|sig)$/i
/** Words of `X-Auth`, `x_auth`, `xAuth` and `XAuth`. */
const wordBounds = /[^A-Za-z\d]+|(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/
/**
 * Values that are credentials under any name [RFC 9110 11.4]: a scheme with more behind it (the register of IANA, and schemes that
 * services of their own use), and bare JSON web tokens.
 */
const secretValue =
  /^(?:(?:basic|bearer|concealed|digest|dpop|gnap|hoba|mutual|negotiate|ntlm|oauth|privatetoken|scram-sha-\d+|vapid|hawk|token|jwt|api-?key|apitoken|access-?token|shared(?:key(?:lite)?|accesssignature)|aws4-hmac-sha256|signature)[\s=]|eyJ[\w-]+\.[\w-]+\.)/i

const namesSecret = (name: string): boolean =>
  secretName.test(name) || name.split(wordBounds).some((word) => secretWord.test(word))

/** Says that the header of the request is passed on; it is no secret itself (GS CIM 009, 4.3.6.6). */
const asRequested = 'urn:ngsi-ld:request'

const isSecret = ({ key, value }: Pair): boolean =>
  value !== asRequested && (namesSecret(key) || secretValue.test(value))

/** Pairs as an answer shows them. */
export function shownPairs<P extends Pair>(pairs: readonly P[] | undefined): readonly P[] | undefined {
  return pairs?.map((pair) => (isSecret(pair) ? { ...pair, value: hidden } : pair))
}

/** Browsers and Node take any number of slashes, of either kind, before the authority. */
const userInfo = /^([a-z][a-z\d+.-]*:[/\\]*)[^/?#\\]*@/i
const parameter = /([?&;])([^=&;#]+)=([^&;#]+)/g

/** An address as an answer shows it: without user name, password, and query parameters named like secrets. */
export function shownAddress(uri: string): string {
  return uri
    .replace(userInfo, `$1${hidden}@`)
    .replace(parameter, (all, separator: string, name: string) =>
      namesSecret(name) ? `${separator}${name}=${hidden}` : all,
    )
}

/**
 * What a client sent, with the stored secrets in place of placeholders.
 * @param stored what there was before; undefined for something new
 * @throws ngsi-ld.bad-request-data for a placeholder that stands for nothing stored at this address
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
 * Refuses to send stored secrets to another address than they were stored for.
 * @throws ngsi-ld.bad-request-data
 */
export function assertSecretsStay(before: Addressed, after: Addressed, field: string): void {
  if (originOf(before.uri) === originOf(after.uri)) return
  if (before.pairs?.some(isSecret) === true)
    throw badRequestData(
      'changes the address that stored secrets are sent to; send them again beside it',
      field,
    )
}

const unknownSecret = (field: string) =>
  badRequestData(
    `${hidden} stands for a secret that is stored for this address, and there is none; send the secret`,
    field,
  )

/** Who an address belongs to. */
function originOf(uri: string): string {
  const url = URL.parse(uri)
  return url === null || url.host === '' ? uri : `${url.protocol}//${url.host}`
}
