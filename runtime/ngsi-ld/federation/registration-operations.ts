/**
 * The operations that a context source may offer, and their groups [NGSI-LD 4.20]. A registration without
 * operations offers the group federationOps.
 */
import type { Registration } from './registration.ts'

const retrieveOps = ['retrieveEntity', 'queryEntity'] as const
const updateOps = ['updateEntity', 'updateAttrs', 'replaceEntity', 'replaceAttrs'] as const
const attributeOps = ['appendAttrs', 'deleteAttrs', 'mergeEntity'] as const
const discoveryOps = [
  'retrieveEntityTypes',
  'retrieveEntityTypeDetails',
  'retrieveEntityTypeInfo',
  'retrieveAttrTypes',
  'retrieveAttrTypeDetails',
  'retrieveAttrTypeInfo',
] as const
const subscriptionOps = [
  'createSubscription',
  'updateSubscription',
  'retrieveSubscription',
  'querySubscription',
  'deleteSubscription',
] as const
const entityMapOps = [
  'retrieveEntityMap',
  'updateEntityMap',
  'deleteEntityMap',
  'createEntityMapQueryEntity',
] as const
const batchOps = ['createBatch', 'upsertBatch', 'updateBatch', 'deleteBatch', 'mergeBatch'] as const
const temporalOps = [
  'upsertTemporal',
  'appendAttrsTemporal',
  'deleteAttrsTemporal',
  'updateAttrInstanceTemporal',
  'deleteAttrInstanceTemporal',
  'deleteTemporal',
  'retrieveTemporal',
  'queryTemporal',
] as const

const singles = [
  ...retrieveOps,
  ...updateOps,
  ...attributeOps,
  ...discoveryOps,
  ...subscriptionOps,
  ...batchOps,
  ...temporalOps,
  ...entityMapOps,
  'createEntityMapQueryTemporal',
  'createEntity',
  'deleteEntity',
  'purgeEntity',
  'queryBatch',
  'retrieveContextSourceIdentity',
] as const

export type SourceOperation = (typeof singles)[number]

const identity = 'retrieveContextSourceIdentity'

const groups: Readonly<Record<string, readonly SourceOperation[]>> = {
  federationOps: [
    ...retrieveOps,
    'queryBatch',
    ...discoveryOps,
    ...subscriptionOps,
    ...entityMapOps,
    identity,
  ],
  updateOps,
  retrieveOps,
  redirectionOps: [
    'createEntity',
    ...updateOps,
    ...attributeOps,
    'deleteEntity',
    'purgeEntity',
    ...retrieveOps,
    ...discoveryOps,
    ...entityMapOps,
    identity,
  ],
  associationOps: [...retrieveOps, 'queryBatch', ...discoveryOps, ...subscriptionOps, identity],
}

/** Operations that change no entity; an auxiliary source may offer only these. */
const consumption: ReadonlySet<SourceOperation> = new Set<SourceOperation>([
  ...retrieveOps,
  'queryBatch',
  ...discoveryOps,
  ...subscriptionOps,
  ...entityMapOps,
  'createEntityMapQueryTemporal',
  'retrieveTemporal',
  'queryTemporal',
  'retrieveContextSourceIdentity',
])

const known: ReadonlySet<string> = new Set<string>([...singles, ...Object.keys(groups)])

export const isOperation = (name: string): boolean => known.has(name)

/** Expands names of groups to single operations. */
export function operationsOf(names: readonly string[] = ['federationOps']): ReadonlySet<SourceOperation> {
  return new Set(names.flatMap((name) => groups[name] ?? [name as SourceOperation]))
}

/** Whether all of these only read. */
export function areConsumption(names: readonly string[] | undefined): boolean {
  return [...operationsOf(names)].every((operation) => consumption.has(operation))
}

export function offers(registration: Registration, operation: SourceOperation): boolean {
  return operationsOf(registration.operations).has(operation)
}
