/**
 * `selvedge run`: runs the gateway in the foreground. It writes log lines to standard output. The exit code
 * is 0 after SIGTERM or SIGINT, 78 for wrong settings, 70 if an essential part failed. A new HTTP token is
 * shown once on standard error and never logged.
 */

import { limits } from '#base/limits/limits.ts'
import { isLoopbackListener } from '#base/load/loopback.ts'
import { GatewayError } from '#base/register/errors.ts'
import { createLog, type Log } from '#base/register/log.ts'
import { madeAfterMs, version } from '#base/register/version.ts'
import { systemClock } from '#base/time/clock.ts'
import { openTimekeeper } from '#base/time/timekeeper.ts'
import { folderProblem } from '#cli/settings/data-folder.ts'
import { settingsOrReport } from '#cli/settings/settings-options.ts'
import type { GivenOptions } from '#cli/terminal/arguments.ts'
import { endSignal } from '#cli/terminal/signals.ts'
import { exitCodes, type Terminal } from '#cli/terminal/terminal.ts'
import type { LoadedSettings } from '#config/load/load.ts'
import { readOrCreateToken } from '#config/load/secret-files.ts'
import { markVersion } from '#config/load/version-mark.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import { createGateway } from '#gateway'
import { ensurePasswordFile } from '#mqtt/clients/password-file.ts'

export async function run(given: GivenOptions, terminal: Terminal): Promise<number> {
  const loaded = await settingsOrReport(given, terminal)
  if (loaded === undefined) return exitCodes.settings
  const { settings } = loaded
  const problem = folderProblem(settings.data)
  if (problem !== undefined)
    throw new GatewayError('store.failed', `the data folder ${settings.data} ${problem}`)
  const clock = openTimekeeper(systemClock, madeAfterMs, settings.clock)
  const log = createLog({ level: settings.log.level, clock, write: terminal.out })
  const onFault = (error: unknown): void => {
    log.error('gateway.fault', { error })
    process.exit(exitCodes.internal)
  }
  const onUncaught = (error: unknown): void =>
    isTransient(error)
      ? log.error('gateway.fault', { error, during: 'a failing disk, or without file descriptors' })
      : onFault(error)
  process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)
  const ending = endSignal(clock)
  logSettings(loaded, log)
  showNewToken(settings, log, terminal)
  await showNewPassword(settings, terminal)

  const starting = createGateway({ settings, clock, log, onFault })
  // Before the gateway is ready it needs no orderly stop: the data on disk is consistent at any time.
  const gateway = await Promise.race([starting, ending])
  if (typeof gateway === 'string') process.exit(exitCodes.ok)
  clock.start()
  markVersion(settings.data)
  const { httpPort, mqttPort, pluginPorts } = gateway
  log.info('gateway.ready', {
    version,
    httpPort,
    mqttPort,
    ...(Object.keys(pluginPorts).length > 0 ? { pluginPorts } : {}),
  })
  const signal = await ending
  log.info('gateway.stopping', { signal })
  setTimeout(() => onFault('closing took too long'), limits.closeMs.value + 1000).unref()
  await gateway.close()
  clock.stop()
  log.info('gateway.stopped')
  return exitCodes.ok
}

/**
 * Whether an error is caused by a full or failing disk or by missing file descriptors. Such an error does not
 * end the process; the failed operation is retried elsewhere.
 */
function isTransient(error: unknown): boolean {
  const { code, info } = (error ?? {}) as { code?: unknown; info?: { code?: unknown } }
  const codes = [code, info?.code].filter((one) => typeof one === 'string')
  return codes.some((one) =>
    /^(SQLITE_(FULL|IOERR|CANTOPEN)|ENOSPC|EDQUOT|EIO|EROFS|EMFILE|ENFILE)/.test(one),
  )
}

function logSettings({ settings, file, absent, warnings }: LoadedSettings, log: Log): void {
  log.info('gateway.starting', { version, data: settings.data, file, pid: process.pid })
  for (const warning of warnings) log.warn('config.warning', { warning })
  for (const { setting, part } of absent) log.info('config.absent-part', { setting, part })
}

function showNewToken({ host, http }: Settings, log: Log, terminal: Terminal): void {
  if (http.port === 'off' || isLoopbackListener(host)) return
  const { token, created } = readOrCreateToken(http.tokenFile)
  if (!created) return
  log.info('access.token-created', { file: http.tokenFile })
  terminal.err(`HTTP token, shown only once and stored in ${http.tokenFile}:\n${token}\n`)
}

/** Shows the password of the MQTT user that the first start with an open listener creates. */
async function showNewPassword({ host, mqtt }: Settings, terminal: Terminal): Promise<void> {
  if (mqtt.port === 'off' || isLoopbackListener(host)) return
  const made = await ensurePasswordFile(mqtt.passwordFile)
  if (made === undefined) return
  terminal.err(
    `MQTT user ${made.user}, password shown only once (hashed in ${mqtt.passwordFile}):\n${made.password}\n`,
  )
}
