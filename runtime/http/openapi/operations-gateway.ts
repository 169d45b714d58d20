/** Descriptions of the routes outside NGSI-LD; collected in operations.ts. */

import { done, type OperationDescription, operationsOf } from './operation.ts'

export const gatewayOperations: Readonly<Record<string, OperationDescription>> = {
  ...operationsOf('Devices', '', {
    'POST /senml': ['Receive one SenML pack', { 200: 'Object', 204: null }, [], 'Senml'],
    'GET /selvedge/v1/devices': [
      'Devices awaiting acceptance, frames that could not be decoded, topics that no bridge reads, and the decisions about them',
      { 200: 'Object' },
    ],
    'GET /selvedge/v1/devices/:name': [
      'Details of a device or topic, with its last frames',
      { 200: 'Object' },
    ],
    'POST /selvedge/v1/devices/:name/accept': [
      'Accept a device, or map a topic to a bridge, and process its held frames',
      { 200: 'Object' },
      [],
      'DeviceChoice',
    ],
    'POST /selvedge/v1/devices/:name/ignore': [
      'Ignore a device or a topic filter and drop its held frames',
      { 200: 'Object' },
      [],
      'DeviceChoice',
    ],
    'DELETE /selvedge/v1/devices/:name': ['Withdraw the decision about a device or topic', done, ['kind']],
  }),
  ...operationsOf('Operation', '', {
    'GET /health/live': ['Liveness of the process', { 200: 'Health' }],
    'GET /health/ready': ['Readiness, with reasons if the gateway is not ready', { 200: 'Health' }],
    'GET /metrics': ['Metrics for Prometheus', { 200: 'Text' }],
    'GET /selvedge/v1/info': ['Version and profile', { 200: 'Information' }],
    'GET /selvedge/v1/downward': [
      'Registrations of this gateway at other brokers, and their state',
      { 200: 'Object' },
    ],
    'GET /selvedge/v1/plugins': ['Plugins and their states', { 200: 'Object' }],
    'GET /selvedge/v1/tunnel': [
      'Open the tunnel of a gateway behind NAT, as a WebSocket; Selvedge-Alias names the gateway',
      { 101: null },
    ],
    'POST /selvedge/v1/source-notifications/:token': [
      'Receive a notification of a context source for a subscription forwarded to it',
      { 204: null },
      ['tenant'],
      'Object',
    ],
    'GET /selvedge/v1/backups': ['Existing backups, and the result of the last one', { 200: 'Object' }],
    'POST /selvedge/v1/backups': ['Make a backup and respond when it is on disk', { 201: 'Object' }],
    'GET /': ['Links to the served resources, as a page or as JSON', { 200: 'Object' }],
    'GET /openapi.json': ['This description', { 200: 'Object' }],
  }),
  ...operationsOf('Models', '', {
    'GET /selvedge/v1/models': [
      'ONNX models, their states, and the process that runs them',
      { 200: 'Object' },
    ],
    'POST /selvedge/v1/models': [
      'Check and store the folder of a model, sent as a tar archive (application/x-tar)',
      { 201: 'Object' },
      [],
      'Tar',
    ],
    'DELETE /selvedge/v1/models/:name': ['Remove an uploaded model', done],
    'POST /selvedge/v1/models/:name/measure': [
      'Measure calls of a model in the process that runs models; takes about a second',
      { 200: 'Object' },
    ],
  }),
  ...operationsOf('Uplinks', '', {
    'GET /selvedge/v1/digests': [
      'Counts and hashes of the stored data for comparisons: entities by bucket, one bucket by id, histories by day',
      { 200: 'Object' },
      ['type', 'through', 'bucket', 'id', 'from', 'to', 'position', 'others'],
    ],
    'POST /selvedge/v1/uplinks/:id/reconcile': [
      'Compare the sent data with the central broker and send the difference; the status of the uplink shows the progress',
      { 202: 'Object' },
      ['dryRun'],
    ],
    'DELETE /selvedge/v1/uplinks/:id/reconcile': [
      'Stop a running comparison; data already sent is kept',
      { 200: 'Object' },
    ],
    'GET /selvedge/v1/uplinks': ['All uplinks and their states', { 200: ['Object'] }],
    'GET /selvedge/v1/uplinks/:id': ['State of an uplink', { 200: 'Object' }],
    'POST /selvedge/v1/uplinks/:id/pause': ['Pause an uplink', { 200: 'Object' }],
    'POST /selvedge/v1/uplinks/:id/resume': ['Resume an uplink', { 200: 'Object' }],
    'POST /selvedge/v1/uplinks/:id/test': [
      'Write to the central broker, read back, and describe any problem',
      { 200: 'Object' },
    ],
    'GET /selvedge/v1/queue': [
      'Dead letters: undeliverable notifications, and changes that the broker of an uplink refused',
      { 200: 'Object' },
      ['limit', 'offset'],
    ],
    'GET /selvedge/v1/queue/:id': ['A dead letter with its body', { 200: 'Object' }],
    'DELETE /selvedge/v1/queue/:id': ['Delete a dead letter', done],
    'POST /selvedge/v1/queue/:id/retry': ['Send a dead letter again', done],
  }),
  ...operationsOf('Contexts', '', {
    'GET /contexts/selvedge-platform.jsonld': ['Retrieve the context of the platform', { 200: 'Context' }],
  }),
}
