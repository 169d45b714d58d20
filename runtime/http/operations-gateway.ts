/**
 * What the routes beside NGSI-LD do; operations.ts gathers it.
 */

import { type Operation, op } from './operation.ts'

export const gatewayOperations: Readonly<Record<string, Operation>> = {
  'POST /senml': op('Devices', 'Take one SenML pack', { 200: 'Object', 204: null }, { body: 'Senml' }),
  'GET /health/live': op('Operation', 'Whether the process lives', { 200: 'Health' }),
  'GET /health/ready': op('Operation', 'Whether it serves', { 200: 'Health' }),
  'GET /metrics': op('Operation', 'Metrics for Prometheus', { 200: 'Text' }),
  'GET /selvedge/v1/info': op('Operation', 'Version and profile', { 200: 'Information' }),
  'GET /selvedge/v1/downward': op('Operation', 'Where this gateway is registered, and how it stands there', {
    200: 'Object',
  }),
  'POST /selvedge/v1/source-notifications/:token': op(
    'Operation',
    'Takes a notification of a context source, of a subscription that was passed on to it',
    { 204: null },
    { parameters: ['tenant'], body: 'Object' },
  ),
  'GET /selvedge/v1/backups': op('Operation', 'Backups there are, and how the last one went', {
    200: 'Object',
  }),
  'POST /selvedge/v1/backups': op('Operation', 'Makes a backup and answers when it is on disk', {
    201: 'Object',
  }),
  'GET /openapi.json': op('Operation', 'This description', { 200: 'Object' }),
}
