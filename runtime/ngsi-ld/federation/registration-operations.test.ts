/** The groups of operations of GS CIM 009, 4.20. */
import { expect, it } from 'vitest'
import { operationsOf } from './registration-operations.ts'

const reading = ['retrieveEntity', 'queryEntity', 'queryBatch', 'retrieveEntityTypes', 'retrieveAttrTypeInfo']
const mapping = ['retrieveEntityMap', 'updateEntityMap', 'deleteEntityMap', 'createEntityMapQueryEntity']

it.each([
  ['associationOps', [...reading, 'createSubscription', 'deleteSubscription'], [...mapping, 'updateEntity']],
  ['federationOps', [...reading, ...mapping, 'querySubscription'], ['createEntity', 'queryTemporal']],
  [
    'redirectionOps',
    [...mapping, 'createEntity', 'purgeEntity', 'mergeEntity'],
    ['queryBatch', 'createBatch'],
  ],
  ['updateOps', ['updateEntity', 'replaceAttrs'], ['createEntity', 'mergeEntity', 'queryEntity']],
  ['retrieveOps', ['retrieveEntity', 'queryEntity'], ['queryBatch', ...mapping]],
])('%s includes its operations and no others', (group, within, without) => {
  const operations: ReadonlySet<string> = operationsOf([group])
  expect(within.filter((name) => !operations.has(name))).toEqual([])
  expect(without.filter((name) => operations.has(name))).toEqual([])
})
