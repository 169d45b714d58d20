/** Descriptions of the routes outside NGSI-LD; collected in operations.ts. */

import { done, type OperationDescription, op } from './operation.ts'

export const gatewayOperations: Readonly<Record<string, OperationDescription>> = {
  'POST /senml': op('Devices', 'Receive one SenML pack', { 200: 'Object', 204: null }, { body: 'Senml' }),
  'GET /selvedge/v1/devices': op(
    'Devices',
    'Devices awaiting acceptance, frames that could not be decoded, topics that no bridge reads, and the decisions about them',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/devices/:name': op('Devices', 'Details of a device or topic, with its last frames', {
    200: 'Object',
  }),
  'POST /selvedge/v1/devices/:name/accept': op(
    'Devices',
    'Accept a device, or map a topic to a bridge, and process its held frames',
    { 200: 'Object' },
    { body: 'DeviceChoice' },
  ),
  'POST /selvedge/v1/devices/:name/ignore': op(
    'Devices',
    'Ignore a device or a topic filter and drop its held frames',
    { 200: 'Object' },
    { body: 'DeviceChoice' },
  ),
  'DELETE /selvedge/v1/devices/:name': op('Devices', 'Withdraw the decision about a device or topic', done, {
    parameters: ['kind'],
  }),
  'GET /health/live': op('Operation', 'Liveness of the process', { 200: 'Health' }),
  'GET /health/ready': op('Operation', 'Readiness, with reasons if the gateway is not ready', {
    200: 'Health',
  }),
  'GET /metrics': op('Operation', 'Metrics for Prometheus', { 200: 'Text' }),
  'GET /selvedge/v1/info': op('Operation', 'Version and profile', { 200: 'Information' }),
  'GET /selvedge/v1/downward': op(
    'Operation',
    'Registrations of this gateway at other brokers, and their state',
    {
      200: 'Object',
    },
  ),
  'GET /selvedge/v1/plugins': op('Operation', 'Plugins and their states', { 200: 'Object' }),
  'GET /selvedge/v1/tunnel': op(
    'Operation',
    'Open the tunnel of a gateway behind NAT, as a WebSocket; Selvedge-Alias names the gateway',
    { 101: null },
  ),
  'POST /selvedge/v1/source-notifications/:token': op(
    'Operation',
    'Receive a notification of a context source for a subscription forwarded to it',
    { 204: null },
    { parameters: ['tenant'], body: 'Object' },
  ),
  'GET /selvedge/v1/backups': op('Operation', 'Existing backups, and the result of the last one', {
    200: 'Object',
  }),
  'POST /selvedge/v1/backups': op('Operation', 'Make a backup and respond when it is on disk', {
    201: 'Object',
  }),
  'GET /selvedge/v1/digests': op(
    'Uplinks',
    'Counts and hashes of the stored data for comparisons: entities by bucket, one bucket by id, histories by day',
    { 200: 'Object' },
    { parameters: ['type', 'through', 'bucket', 'id', 'from', 'to', 'position', 'others'] },
  ),
  'POST /selvedge/v1/uplinks/:id/reconcile': op(
    'Uplinks',
    'Compare the sent data with the central broker and send the difference; the status of the uplink shows the progress',
    { 202: 'Object' },
    { parameters: ['dryRun'] },
  ),
  'DELETE /selvedge/v1/uplinks/:id/reconcile': op(
    'Uplinks',
    'Stop a running comparison; data already sent is kept',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/uplinks': op('Uplinks', 'All uplinks and their states', { 200: ['Object'] }),
  'GET /selvedge/v1/uplinks/:id': op('Uplinks', 'State of an uplink', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/pause': op('Uplinks', 'Pause an uplink', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/resume': op('Uplinks', 'Resume an uplink', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/test': op(
    'Uplinks',
    'Write to the central broker, read back, and describe any problem',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/queue': op(
    'Uplinks',
    'Dead letters: undeliverable notifications, and changes that the broker of an uplink refused',
    { 200: 'Object' },
    { parameters: ['limit', 'offset'] },
  ),
  'GET /selvedge/v1/queue/:id': op('Uplinks', 'A dead letter with its body', { 200: 'Object' }),
  'DELETE /selvedge/v1/queue/:id': op('Uplinks', 'Delete a dead letter', done),
  'POST /selvedge/v1/queue/:id/retry': op('Uplinks', 'Send a dead letter again', done),
  'GET /': op('Operation', 'Links to the served resources, as a page or as JSON', { 200: 'Object' }),
  'GET /openapi.json': op('Operation', 'This description', { 200: 'Object' }),
}
