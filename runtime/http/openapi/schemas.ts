/**
 * The schemas of the OpenAPI description. They hold for all media types, so NGSI-LD elements are objects with
 * only their mandatory members.
 */

export type OpenApiNode = Readonly<Record<string, unknown>>

export const text: OpenApiNode = { type: 'string' }
const whole: OpenApiNode = { type: 'integer', minimum: 0 }
const object = (required: readonly string[], properties: OpenApiNode = {}): OpenApiNode => ({
  type: 'object',
  required,
  properties: { ...Object.fromEntries(required.map((name) => [name, text])), ...properties },
})
const listOf = (items: OpenApiNode): OpenApiNode => ({ type: 'array', items })

export const schemas = {
  Attribute: { type: 'object', description: 'An attribute instance, or a list of them' },
  AttributeList: object(['id', 'type', 'attributeList'], { attributeList: listOf(text) }),
  BatchOperationResult: object(['success', 'errors'], {
    success: listOf(text),
    errors: listOf(object(['entityId', 'error'], { error: { $ref: '#/components/schemas/Problem' } })),
  }),
  Context: object(['@context'], { '@context': {} }),
  ContextDetails: object(['URL', 'localId', 'kind', 'createdAt'], { numberOfHits: whole }),
  ContextSourceIdentity: object([
    'id',
    'type',
    'contextSourceAlias',
    'contextSourceUptime',
    'contextSourceTimeAt',
  ]),
  DeviceChoice: {
    type: 'object',
    properties: { kind: { enum: ['device', 'topic'] }, bridge: text, source: { type: 'object' } },
  },
  Entity: object(['id', 'type'], { type: { oneOf: [text, listOf(text)] } }),
  EntityTemporal: object(['id', 'type'], { type: { oneOf: [text, listOf(text)] } }),
  EntityTypeInfo: object(['id', 'type', 'typeName', 'entityCount', 'attributeDetails'], {
    entityCount: whole,
    attributeDetails: listOf({ type: 'object' }),
  }),
  EntityTypeList: object(['id', 'type', 'typeList'], { typeList: listOf(text) }),
  Fragment: { type: 'object', description: 'Attributes by name' },
  Health: object(['status', 'version']),
  Ids: listOf({ type: 'string', format: 'uri' }),
  Information: object(['product', 'version']),
  Object: { type: 'object' },
  Problem: object(['type', 'title', 'detail', 'status'], { status: whole }),
  Query: object(['type'], { type: { const: 'Query' } }),
  Registration: object(['id', 'type', 'information', 'endpoint'], {
    type: { const: 'ContextSourceRegistration' },
    information: listOf({ type: 'object' }),
  }),
  Senml: listOf({ type: 'object' }),
  Snapshot: { type: 'object', properties: { snapshotQueries: listOf({ type: 'object' }) } },
  Subscription: object(['id', 'type', 'notification'], {
    type: { const: 'Subscription' },
    notification: { type: 'object' },
  }),
  Tar: { type: 'string', format: 'binary' },
  Text: text,
  UpdateResult: object(['updated', 'notUpdated'], {
    updated: listOf(text),
    notUpdated: listOf(object(['attributeName', 'reason'])),
  }),
} as const satisfies Readonly<Record<string, OpenApiNode>>

export type SchemaName = Exclude<keyof typeof schemas, 'Problem'>
