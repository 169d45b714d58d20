/**
 * What the routes beside NGSI-LD do; operations.ts gathers it.
 */

import { done, type Operation, op } from './operation.ts'

export const gatewayOperations: Readonly<Record<string, Operation>> = {
  'POST /senml': op('Devices', 'Take one SenML pack', { 200: 'Object', 204: null }, { body: 'Senml' }),
  'GET /selvedge/v1/devices': op(
    'Devices',
    'Devices that wait to be accepted, frames that were refused, topics that no bridge reads, and what was decided about them',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/devices/:name': op(
    'Devices',
    'What is known of a device or topic, with its last frames',
    {
      200: 'Object',
    },
  ),
  'POST /selvedge/v1/devices/:name/accept': op(
    'Devices',
    'Accepts a device, or maps a topic to a bridge, and releases the frames that were held',
    { 200: 'Object' },
    { body: 'DeviceChoice' },
  ),
  'POST /selvedge/v1/devices/:name/ignore': op(
    'Devices',
    'Ignores a device or a topic filter and drops the frames that were held',
    { 200: 'Object' },
    { body: 'DeviceChoice' },
  ),
  'DELETE /selvedge/v1/devices/:name': op(
    'Devices',
    'Withdraws what was decided about a device or topic',
    done,
    {
      parameters: ['kind'],
    },
  ),
  'GET /health/live': op('Operation', 'Whether the process lives', { 200: 'Health' }),
  'GET /health/ready': op('Operation', 'Whether it serves', { 200: 'Health' }),
  'GET /metrics': op('Operation', 'Metrics for Prometheus', { 200: 'Text' }),
  'GET /selvedge/v1/info': op('Operation', 'Version and profile', { 200: 'Information' }),
  'GET /selvedge/v1/downward': op('Operation', 'Where this gateway is registered, and how it stands there', {
    200: 'Object',
  }),
  'GET /selvedge/v1/plugins': op('Operation', 'Plugins that run here, and how each is', { 200: 'Object' }),
  'GET /selvedge/v1/tunnel': op(
    'Operation',
    'Opens the tunnel of a gateway behind NAT, as WebSocket; Selvedge-Alias says whose',
    { 101: null },
  ),
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
  'GET /selvedge/v1/digests': op(
    'Uplinks',
    'Counts and hashes of what is held, to compare: of entities by buckets, of one bucket by ids, of histories by days',
    { 200: 'Object' },
    { parameters: ['type', 'through', 'bucket', 'id', 'from', 'to', 'position', 'others'] },
  ),
  'POST /selvedge/v1/uplinks/:id/reconcile': op(
    'Uplinks',
    'Compares what was sent with what the other broker holds, and sends the difference; the status of the uplink reports',
    { 202: 'Object' },
    { parameters: ['dryRun'] },
  ),
  'DELETE /selvedge/v1/uplinks/:id/reconcile': op(
    'Uplinks',
    'Ends a comparison that is under way where it is; what it sent stays',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/uplinks': op('Uplinks', 'All uplinks and how they are', { 200: ['Object'] }),
  'GET /selvedge/v1/uplinks/:id': op('Uplinks', 'How an uplink is', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/pause': op('Uplinks', 'Sends nothing from now on', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/resume': op('Uplinks', 'Ends the pause', { 200: 'Object' }),
  'POST /selvedge/v1/uplinks/:id/test': op(
    'Uplinks',
    'Writes to the other broker, reads back, and says in words what is wrong',
    { 200: 'Object' },
  ),
  'GET /selvedge/v1/queue': op(
    'Uplinks',
    'What was given up: notifications, and changes that the broker of an uplink refuses',
    { 200: 'Object' },
    { parameters: ['limit', 'offset'] },
  ),
  'GET /selvedge/v1/queue/:id': op('Uplinks', 'One of these, with its body', { 200: 'Object' }),
  'DELETE /selvedge/v1/queue/:id': op('Uplinks', 'Drops one of these', done),
  'POST /selvedge/v1/queue/:id/retry': op('Uplinks', 'Sends one of these again', done),
  'GET /': op('Operation', 'Links to what is served here, as a page or as JSON', { 200: 'Object' }),
  'GET /openapi.json': op('Operation', 'This description', { 200: 'Object' }),
}
