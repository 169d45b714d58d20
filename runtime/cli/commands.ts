/**
 * All commands: name, purpose, options. A command is loaded when it is called, so that it does not load the
 * modules of the others.
 */

import { settingsOptions } from '#cli/settings/settings-options.ts'
import type { Command, Option } from '#cli/terminal/arguments.ts'

const json: Option = { name: 'json', summary: 'Print the result as JSON' }

/** Options of commands that send requests to a running gateway. */
const gatewayOptions: readonly Option[] = [
  { name: 'url', value: 'URL', summary: 'Address of the gateway; default that of the settings' },
  { name: 'token-file', value: 'FILE', summary: 'File of its token; default http.tokenFile of the settings' },
]

/** Options of commands that access a tenant of a running gateway. */
const tenantOptions: readonly Option[] = [
  ...gatewayOptions,
  { name: 'tenant', value: 'NAME', summary: 'The tenant; default the unnamed one' },
]

export const commands: readonly Command[] = [
  {
    name: 'run',
    summary: 'Run the gateway in the foreground',
    details:
      'Log lines are written to standard output, one JSON object each; gateway.ready names the ports. SIGTERM or SIGINT\nstops the gateway in an orderly way, a second signal stops it at once.',
    options: settingsOptions,
    load: async () => (await import('#cli/gateway/run.ts')).run,
  },
  {
    name: 'check',
    summary: 'Check settings, data folder, credentials and ports without starting',
    options: [...settingsOptions, json],
    load: async () => (await import('#cli/settings/check.ts')).check,
  },
  {
    name: 'status',
    summary: 'Show the state of the gateway, running or not',
    details:
      'Queries the running gateway; if none responds, reads the data folder without changing it. With --url it queries\nonly that gateway, with the token of --token-file if a token is required.',
    options: [...gatewayOptions, ...settingsOptions, json],
    load: async () => (await import('#cli/gateway/status-command.ts')).status,
  },
  {
    name: 'decode',
    summary: 'Decode a payload and show the resulting readings and entities',
    details: 'Reads the payload from --payload, --file, or standard input.',
    options: [
      { name: 'topic', value: 'TOPIC', summary: 'MQTT topic of the payload' },
      { name: 'content-type', value: 'TYPE', summary: 'Media type, as stated by HTTP or MQTT 5' },
      { name: 'retained', summary: 'Treat it as an old retained message of another broker' },
      { name: 'payload', value: 'TEXT', summary: 'The payload itself' },
      { name: 'file', value: 'FILE', summary: 'The file that contains it' },
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/settings/decode.ts')).decode,
  },
  {
    name: 'export',
    summary: 'Write the entities of a running gateway to a file',
    details:
      'Writes lines of JSON-LD, one entity each, or CSV, one row per attribute instance. An entity that exists during\nthe whole export is written once. Without --out the result is written to standard output.',
    options: [
      {
        name: 'out',
        value: 'FILE',
        summary: 'The file to create; it must not exist',
      },
      {
        name: 'format',
        value: 'FORMAT',
        summary: 'jsonld or csv; default by the name of the file, else jsonld',
      },
      { name: 'type', value: 'TYPES', summary: 'Only entities of these types, such as A,B' },
      { name: 'q', value: 'QUERY', summary: 'Only entities that match the query' },
      {
        name: 'history',
        summary: 'Export the history of these entities instead of their current state',
      },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/data/export.ts')).exportEntities,
  },
  {
    name: 'import',
    summary: 'Send the entities of a file to a running gateway',
    details:
      'Reads the output of export: lines of JSON-LD, or CSV with at least id, type, attribute and value. Failed entities\nare listed, and the others are imported. Without --file it reads standard input.',
    options: [
      { name: 'file', value: 'FILE', summary: 'The file to read' },
      {
        name: 'format',
        value: 'FORMAT',
        summary: 'jsonld or csv; default by the name of the file, else jsonld',
      },
      {
        name: 'history',
        summary: 'The file contains histories, which are added to existing ones; import the entities first',
      },
      {
        name: 'mode',
        value: 'MODE',
        summary: 'Existing entities: replace (default), update, or create (skip them)',
      },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/data/import.ts')).importEntities,
  },
  {
    name: 'backup',
    summary: 'Make a backup, of a running gateway or a stopped one',
    details:
      'A running gateway makes the backup in the folder of its settings; if none runs, the data folder is read. With --to,\nthe data folder of this machine is read, whether a gateway runs or not. A backup is a folder with everything\nneeded to continue: all tenants, credentials, and the identity of the gateway.',
    options: [
      {
        name: 'to',
        value: 'FOLDER',
        summary: 'The folder to create the backup in, next to others; created if missing',
      },
      { name: 'list', summary: 'Only list the existing backups' },
      ...gatewayOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/data/backup-command.ts')).backup,
  },
  {
    name: 'restore',
    summary: 'Fill an empty data folder from a backup',
    details:
      'The gateway continues with the same identity and credentials from the time of the backup. Later data is missing,\nwhich the history records as a gap. No gateway may run on the data folder.',
    options: [
      {
        name: 'from',
        value: 'FOLDER',
        summary: 'The backup, or a folder of backups: the newest verified one',
      },
      {
        name: 'gateway',
        value: 'ID',
        summary: 'Gateway id, if the folder contains backups of several gateways',
      },
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/data/restore-command.ts')).restore,
  },
  {
    name: 'uplink',
    summary: 'Show, test, pause, resume and reconcile uplinks',
    words: { form: 'ACTION [ID]', least: 1, most: 2 },
    details:
      'Actions: status, test, pause, resume, reconcile. Without an ID, status and test apply to all uplinks, and the\nothers to the only one. test writes to the central broker, reads back, and reports errors. reconcile compares the\nsent entities with the central broker, sends the differences and reports its progress. Ctrl-C stops waiting,\n--cancel stops the comparison. Exit code 1: an uplink is offline, a test failed, or a comparison was cancelled or\nis not finished.',
    options: [
      { name: 'dry-run', summary: 'With reconcile: compare only, send nothing' },
      { name: 'cancel', summary: 'With reconcile: cancel the running comparison' },
      {
        name: 'timeout',
        value: 'SECONDS',
        summary:
          'With reconcile: wait at most this long (0: do not wait); the gateway continues the comparison',
      },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/uplink-command.ts')).uplink,
  },
  {
    name: 'index',
    summary: 'Show the state of the index of streams and sensors, or rebuild it',
    words: { form: 'status|rebuild', least: 1, most: 1 },
    details:
      'status shows the indexed entities per broker, and how far the index is behind. rebuild empties the index and reads\nall entities again; it returns when all existing entities are indexed. Meanwhile query results are incomplete.',
    options: [...tenantOptions, ...settingsOptions, json],
    load: async () => (await import('./index-command.ts')).index,
  },
  {
    name: 'models',
    summary: 'List, add, check, measure and remove ONNX models',
    words: { form: '[ls|add|test|bench|rm [DIR|NAME]]', least: 0, most: 2 },
    details:
      'ls, the default action, lists the models of a gateway. add sends a folder to it, which takes effect after all checks.\nrm removes an added model. test checks a folder without a gateway: model.json, hash, operators, size, shapes and\ngolden vectors. bench measures calls of a folder, or of a model of the gateway. Exit code 1: the model is refused.',
    options: [...gatewayOptions, ...settingsOptions, json],
    load: async () => (await import('./models-command.ts')).models,
  },
  {
    name: 'faults',
    summary: 'Import the sensor histories of the original fault detection',
    words: { form: 'import FOLDER', least: 2, most: 2 },
    details:
      'The folder has one CSV file per Sensor, named by its id with an underscore for each colon: a header, then in each\nline an ISO time (UTC without a zone) and a value. The values are added to the history of the Sensor, each once, so\nthe import can be repeated. Its fault detection then learns anew. Malformed lines are listed with their number, and\nthe others are imported. Exit code 1: there were problems.',
    options: [...gatewayOptions, ...settingsOptions, json],
    load: async () => (await import('./faults-command.ts')).faults,
  },
  {
    name: 'queue',
    summary: 'List, retry or drop dead letters and refused changes',
    words: { form: '[ls|retry|drop [ID ...]]', least: 0, most: 1000 },
    details:
      'The queue contains notifications that could not be delivered and changes that the central broker of an uplink\nrefused, each with its reason. Without an action it lists them. retry and drop expect IDs of the list, or --all.\nExit code 1: an action failed.',
    options: [
      { name: 'all', summary: 'Everything, or all of one subscription' },
      { name: 'subscription', value: 'ID', summary: 'Only what belongs to this subscription or uplink' },
      { name: 'limit', value: 'COUNT', summary: 'Maximum entries of the list; default 100' },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/queue-command.ts')).queue,
  },
  {
    name: 'devices',
    summary: 'List waiting devices and unread topics, accept or ignore them',
    words: { form: '[ls|show|accept|ignore|forget [NAME]]', least: 0, most: 2 },
    details:
      'ls, the default action, lists devices that wait to be accepted, rejected frames, and topics that no bridge reads.\nNAME is a device, a topic, or a topic pattern such as plant/{device}/+. accept accepts a device, or maps a topic to\na bridge, without a restart, and stores the held frames. ignore drops them. forget withdraws either decision.',
    options: [
      { name: 'kind', value: 'KIND', summary: 'device or topic, if NAME could be both' },
      {
        name: 'bridge',
        value: 'BRIDGE',
        summary: 'With accept: the bridge that reads the topic; default the one shown by ls',
      },
      {
        name: 'device',
        value: 'DEVICE',
        summary: 'With accept: the device, if the topic does not name one',
      },
      {
        name: 'field-map',
        value: 'PATH=NAME[:UNIT]',
        many: true,
        summary: 'With accept: path, name and unit of a value in the payload; default all values',
      },
      {
        name: 'time-zone',
        value: 'ZONE',
        summary: 'With accept: zone of local times, such as Europe/Vienna or +02:00',
      },
      { name: 'source', value: 'JSON', summary: 'With accept: further keys of a source of the JSON bridge' },
      ...gatewayOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/devices-command.ts')).devices,
  },
  {
    name: 'tunnels',
    summary: 'List the gateway names reserved for tunnels, release a name',
    words: { form: '[ls|release [NAME]]', least: 0, most: 2 },
    details:
      'A gateway that opens a tunnel to this one reserves its name, and authenticates by the secret in its data folder.\nls, the default action, lists the names. release allows another gateway to take the name, such as the same gateway\nwith a new data folder.',
    options: [...settingsOptions, json],
    load: async () => (await import('#cli/gateway/tunnels-command.ts')).tunnels,
  },
  {
    name: 'users',
    summary: 'List, add and remove MQTT users',
    details:
      'Without --add or --remove it lists the names. A new password is generated and shown once, unless it is read from\nstandard input.',
    options: [
      { name: 'add', value: 'NAME', summary: 'Add this user, or change its password' },
      { name: 'password-stdin', summary: 'Read the password from standard input' },
      { name: 'remove', value: 'NAME', summary: 'Remove this user' },
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/settings/users.ts')).users,
  },
  {
    name: 'demo',
    summary: 'Run a gateway with a simulated site, or with recorded series',
    details:
      'The site is a separate process that uses MQTT and HTTP as any device would. Ctrl-C stops both.\nSeries: CSV files with a time column and one column per device (the file names the quantity), or with a\ndevice column (the columns name the quantities); a file with longitude and latitude contains locations.',
    options: [
      { name: 'data', value: 'FOLDER', summary: 'Replay the CSV series of a folder instead of simulating' },
      {
        name: 'speed',
        value: 'FACTOR',
        summary: 'Seconds of recorded time per second, or max; default 3600',
      },
      { name: 'step', value: 'SECONDS', summary: 'Time between rows of series without times; default 5' },
      { name: 'keep', value: 'FOLDER', summary: 'Data folder to use and keep; default a temporary one' },
      { name: 'port', value: 'PORT', summary: 'HTTP port; default 9090, or any free port if that is in use' },
      {
        name: 'mqtt-port',
        value: 'PORT',
        summary: 'MQTT port; default 1883, or any free port if that is in use',
      },
      { name: 'duration', value: 'SECONDS', summary: 'Stop this long after the site has started' },
      {
        name: 'site',
        value: 'URL',
        summary: 'Run only the site, for a running gateway; with --mqtt-port',
      },
    ],
    load: async () => (await import('#cli/demo/demo.ts')).demo,
  },
]
