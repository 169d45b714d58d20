/**
 * All commands: name, purpose, options. Each is loaded only when it is called, so that none pays in time and memory
 * for what another needs.
 */

import { settingsOptions } from '#cli/settings/settings-options.ts'
import type { Command, Option } from '#cli/terminal/arguments.ts'

const json: Option = { name: 'json', summary: 'Answer in JSON' }

/** Of commands that talk to a running gateway. */
const gatewayOptions: readonly Option[] = [
  { name: 'url', value: 'URL', summary: 'The gateway to ask; default the one of these settings' },
  { name: 'token-file', value: 'FILE', summary: 'File of its token; default http.tokenFile of the settings' },
]

/** Of those that talk to one tenant of it. */
const tenantOptions: readonly Option[] = [
  ...gatewayOptions,
  { name: 'tenant', value: 'NAME', summary: 'The tenant; default the one without a name' },
]

export const commands: readonly Command[] = [
  {
    name: 'run',
    summary: 'Run the gateway in the foreground',
    details:
      'Log lines go to standard output, one JSON object each; gateway.ready names the ports. SIGTERM or SIGINT\nends it in order, a second one at once.',
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
    summary: 'Tell how the gateway is doing, running or not',
    details:
      'Asks the running gateway; where none answers, reads the data folder without changing it. With --url it asks that\ngateway alone, with the token of --token-file where it wants one.',
    options: [...gatewayOptions, ...settingsOptions, json],
    load: async () => (await import('#cli/gateway/status-command.ts')).status,
  },
  {
    name: 'decode',
    summary: 'Decode one payload and show what would become of it',
    details: 'The payload comes from --payload, --file, or standard input.',
    options: [
      { name: 'topic', value: 'TOPIC', summary: 'MQTT topic it would arrive at' },
      { name: 'content-type', value: 'TYPE', summary: 'Media type, as HTTP or MQTT 5 would state it' },
      { name: 'retained', summary: 'As a retained message of another broker: old news' },
      { name: 'payload', value: 'TEXT', summary: 'The payload itself' },
      { name: 'file', value: 'FILE', summary: 'The file that holds it' },
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/settings/decode.ts')).decode,
  },
  {
    name: 'export',
    summary: 'Write the entities of a running gateway to a file',
    details:
      'Lines of JSON-LD, one entity each, or CSV, one row for each attribute instance. Entities that stay while\nit goes on are in it once. Without --out the result goes to standard output.',
    options: [
      {
        name: 'out',
        value: 'FILE',
        summary: 'The file to write, when there is something to export; it must not exist',
      },
      {
        name: 'format',
        value: 'FORMAT',
        summary: 'jsonld or csv; default by the name of the file, else jsonld',
      },
      { name: 'type', value: 'TYPES', summary: 'Only entities of these types, such as A,B' },
      { name: 'q', value: 'QUERY', summary: 'Only entities that satisfy the query' },
      {
        name: 'history',
        summary: 'What these entities were, each value with its time, instead of what they are',
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
      'Reads what export writes: lines of JSON-LD, or CSV of which id, type, attribute and value are enough. What\nfails is told one by one, and the rest goes on. Without --file it reads standard input.',
    options: [
      { name: 'file', value: 'FILE', summary: 'The file to read' },
      {
        name: 'format',
        value: 'FORMAT',
        summary: 'jsonld or csv; default by the name of the file, else jsonld',
      },
      {
        name: 'history',
        summary: 'The file holds histories, which are added to what is there: import the entities before',
      },
      {
        name: 'mode',
        value: 'MODE',
        summary: 'Entities that exist: replace (default) them, update them, or create only others',
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
      'A running gateway is asked to make one where its settings say; where none runs, the data folder is read.\nWith --to, the data folder of this machine is read whether a gateway runs or not. A backup is a folder with\neverything that is needed to go on: all tenants, credentials, who the gateway is.',
    options: [
      { name: 'to', value: 'FOLDER', summary: 'The folder to put it in, beside others; made when absent' },
      { name: 'list', summary: 'Only tell which backups there are' },
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
      'The gateway goes on as who it was, with the same ids and credentials, from the instant of the backup. What\ncame in later is missing, and its history says so. No gateway may run on the data folder.',
    options: [
      {
        name: 'from',
        value: 'FOLDER',
        summary: 'The backup, or a folder of backups: the newest verified one',
      },
      { name: 'gateway', value: 'ID', summary: 'Whose, where several gateways keep theirs in that folder' },
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/data/restore-command.ts')).restore,
  },
  {
    name: 'uplink',
    summary: 'Tell how uplinks are, test their way, pause and resume them, compare',
    words: { form: 'ACTION [ID]', least: 1, most: 2 },
    details:
      'Actions: status, test, pause, resume, reconcile. Without an ID: all uplinks, and for the last three the only\none. test writes to the other broker, reads back, and says what is wrong. reconcile compares what went up with\nwhat is there, sends the difference and reports; it says what it waits for. Ctrl-C ends waiting, --cancel the\ncomparison. Exit code 1: one that is told of by status is cut off, its way does not work, or a comparison was\ncancelled or is not through.',
    options: [
      { name: 'dry-run', summary: 'With reconcile: only look, and send nothing' },
      { name: 'cancel', summary: 'With reconcile: end the one that is under way' },
      {
        name: 'timeout',
        value: 'SECONDS',
        summary: 'With reconcile: wait so long at most, 0 not at all; the gateway goes on with it',
      },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/uplink-command.ts')).uplink,
  },
  {
    name: 'index',
    summary: 'Tell how the index of streams and sensors is, build it anew',
    words: { form: 'status|rebuild', least: 1, most: 1 },
    details:
      'status tells how many entities of which broker are in it, and how far it is behind. rebuild empties it and reads\neverything again; it ends when all that was there is in it. Meanwhile answers of the index lack entities.',
    options: [...tenantOptions, ...settingsOptions, json],
    load: async () => (await import('./index-command.ts')).index,
  },
  {
    name: 'queue',
    summary: 'List, send again or drop what was given up',
    words: { form: '[ls|retry|drop [ID ...]]', least: 0, most: 1000 },
    details:
      'What was given up are notifications that nobody takes and changes that the broker of an uplink refuses, each\nwith its reason. Without an action they are listed. retry and drop take IDs of the list, or --all. Exit code 1: something could not be done.',
    options: [
      { name: 'all', summary: 'Everything, or all of one subscription' },
      { name: 'subscription', value: 'ID', summary: 'Only what belongs to this subscription or uplink' },
      { name: 'limit', value: 'COUNT', summary: 'Most lines of the list; default 100' },
      ...tenantOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/queue-command.ts')).queue,
  },
  {
    name: 'devices',
    summary: 'List what waits or is not read, accept or ignore it',
    words: { form: '[ls|show|accept|ignore|forget [NAME]]', least: 0, most: 2 },
    details:
      'ls, also without an action, lists devices that wait to be accepted, frames that were refused, and topics that no bridge reads. NAME is a\ndevice, a topic, or a topic pattern such as plant/{device}/+. accept takes a device, or maps a topic to a bridge,\nwithout a restart, and stores the frames that were held. ignore drops them. forget withdraws either.',
    options: [
      { name: 'kind', value: 'KIND', summary: 'device or topic, where NAME could be both' },
      {
        name: 'bridge',
        value: 'BRIDGE',
        summary: 'With accept: the bridge that reads the topic; default the one ls names',
      },
      {
        name: 'device',
        value: 'DEVICE',
        summary: 'With accept: the device of a topic that does not name one',
      },
      {
        name: 'field-map',
        value: 'PATH=NAME[:UNIT]',
        many: true,
        summary: 'With accept: a value in the payload, its name, its unit; default all values',
      },
      {
        name: 'time-zone',
        value: 'ZONE',
        summary: 'With accept: of local times, such as Europe/Vienna or +02:00',
      },
      { name: 'source', value: 'JSON', summary: 'With accept: any keys of a source of the JSON bridge' },
      ...gatewayOptions,
      ...settingsOptions,
      json,
    ],
    load: async () => (await import('#cli/gateway/devices-command.ts')).devices,
  },
  {
    name: 'tunnels',
    summary: 'List the gateways that have a name here, release a name',
    words: { form: '[ls|release [NAME]]', least: 0, most: 2 },
    details:
      'A gateway that opens a tunnel to this one has its name from then on, and proves it by the secret in its data\nfolder. ls, also without an action, lists them. release gives the name to the next who comes with it: a gateway with a new data folder.',
    options: [...settingsOptions, json],
    load: async () => (await import('#cli/gateway/tunnels-command.ts')).tunnels,
  },
  {
    name: 'users',
    summary: 'List, add and remove MQTT users',
    details:
      'Without --add or --remove: the names. A new password is made and shown once, unless it comes by\nstandard input.',
    options: [
      { name: 'add', value: 'NAME', summary: 'Add this user, or give it a new password' },
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
      'The site is a process of its own that uses MQTT and HTTP as any device would. Ctrl-C ends both.\nSeries: CSV files with a time column and one column per device (the file names the quantity), or with a\ndevice column (the columns name the quantities); a file with longitude and latitude gives places.',
    options: [
      { name: 'data', value: 'FOLDER', summary: 'Replay the CSV series of a folder instead of simulating' },
      {
        name: 'speed',
        value: 'FACTOR',
        summary: 'Seconds of recorded time per second, or max; default 3600',
      },
      { name: 'step', value: 'SECONDS', summary: 'Between rows of series without times; default 5' },
      { name: 'keep', value: 'FOLDER', summary: 'Data folder to use and leave; default a temporary one' },
      { name: 'port', value: 'PORT', summary: 'HTTP port; default 9090, or any where that is taken' },
      { name: 'mqtt-port', value: 'PORT', summary: 'MQTT port; default 1883, or any where that is taken' },
      { name: 'duration', value: 'SECONDS', summary: 'End by itself this long after the site begins' },
      {
        name: 'site',
        value: 'URL',
        summary: 'Only the site, for a gateway that runs already; with --mqtt-port',
      },
    ],
    load: async () => (await import('#cli/demo/demo.ts')).demo,
  },
]
