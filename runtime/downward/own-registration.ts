/**
 * Builds the registration of this gateway at a centre from the settings (GS CIM 009, 5.2.9). Pure; the expiry
 * time is added when it is sent.
 */
import type { Settings } from '#config/schema/settings-schema.ts'
import type { JsonObject } from '#ngsi-ld/values/json.ts'
import { tunnelUri } from '#ngsi-ld/values/tunnel-uri.ts'

export type RegisterSettings = Settings['register'][number]

export interface Own {
  /** The name of this gateway in the registered tenant. */
  readonly alias: string
  /** The name of the gateway as a whole. */
  readonly gateway: string
  readonly publicUrl: string | undefined
  /** The token that the centre must send with its requests. */
  readonly sourceToken: string | undefined
}

export const registrationId = (alias: string, name: string): string =>
  `urn:ngsi-ld:ContextSourceRegistration:${alias}:${encodeURIComponent(name)}`

export function registrationOf(settings: RegisterSettings, own: Own): JsonObject {
  const { name, mode, context, location, operations, sourceTenant } = settings
  return {
    id: registrationId(own.alias, name),
    type: 'ContextSourceRegistration',
    registrationName: name,
    mode,
    information: [informationOf(settings)],
    endpoint: endpointOf(settings, own),
    contextSourceAlias: own.alias,
    ...(location === undefined ? {} : { location }),
    ...(operations.length === 0 ? {} : { operations }),
    ...(sourceTenant === undefined ? {} : { tenant: sourceTenant }),
    ...(own.sourceToken === undefined
      ? {}
      : { contextSourceInfo: [{ key: 'Authorization', value: `Bearer ${own.sourceToken}` }] }),
    ...(context === undefined ? {} : { '@context': context }),
  }
}

/** A registration is renewed after a third of its time, so that two renewals may fail. */
export const refreshMsOf = ({ refreshSeconds, expirySeconds }: RegisterSettings): number =>
  (refreshSeconds ?? expirySeconds / 3) * 1000

function informationOf({ types, ids, idPattern, properties, relationships }: RegisterSettings): JsonObject {
  const which: JsonObject[] =
    ids.length > 0 ? ids.map((id) => ({ id })) : [idPattern === undefined ? {} : { idPattern }]
  return {
    entities: types.flatMap((type) => which.map((one) => ({ ...one, type }))),
    ...(properties.length === 0 ? {} : { propertyNames: properties }),
    ...(relationships.length === 0 ? {} : { relationshipNames: relationships }),
  }
}

/** The settings guarantee that one of these is present. */
const endpointOf = ({ endpoint, tunnel }: RegisterSettings, { publicUrl, gateway }: Own): string =>
  tunnel ? tunnelUri(gateway) : (endpoint ?? publicUrl ?? '').replace(/\/+$/, '')
