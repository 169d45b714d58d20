/**
 * A whole gateway in the process of the test, over a data folder, so that a restart takes a moment. It is the
 * composition root with settings as the environment gives them; only the process around it is missing.
 */
import { AssertionError } from 'node:assert'
import { createLog } from '#base/register/log.ts'
import { systemClock } from '#base/time/clock.ts'
import { loadSettings } from '#config/load/load.ts'
import { createGateway } from '#gateway'
import { lookOften } from './ceilings.ts'
import { type HttpClient, httpClient } from './http-gateway.ts'
import { quietPlugins } from './quiet-plugins.ts'

/** For tests that count subscriptions or requests: no component adds any. */
export const noPlugins = {
  SELVEDGE_INDEXING_ENABLED: 'false',
  SELVEDGE_RANKING_ENABLED: 'false',
  SELVEDGE_SEARCH_ENABLED: 'false',
}

export interface GatewayInside extends HttpClient {
  readonly httpPort: number | undefined
  readonly mqttPort: number | undefined
  /** Ports of plugins that have one of their own, by name. */
  readonly pluginPorts: Readonly<Record<string, number>>
  close(): Promise<void>
}

/** Opens on any free HTTP port, without MQTT unless `env` says so; `env` holds SELVEDGE_ variables. */
export async function startGatewayInside(
  dataFolder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<GatewayInside> {
  const loaded = await loadSettings({
    env: {
      SELVEDGE_DATA: dataFolder,
      SELVEDGE_HTTP_PORT: '0',
      SELVEDGE_MQTT_PORT: 'off',
      ...quietPlugins,
      ...env,
    },
    folder: dataFolder,
  })
  if (loaded.mistakes !== undefined) {
    throw new AssertionError({ message: `wrong settings: ${JSON.stringify(loaded.mistakes)}` })
  }
  lookOften()
  const gateway = await createGateway({
    settings: loaded.settings,
    clock: systemClock,
    log: createLog({ level: 'error', clock: systemClock, write: (line) => process.stderr.write(line) }),
    onFault: (error) => {
      throw new AssertionError({ message: `the gateway failed: ${String(error)}` })
    },
  })
  return Object.freeze({
    ...httpClient(`http://127.0.0.1:${gateway.httpPort}`),
    httpPort: gateway.httpPort,
    mqttPort: gateway.mqttPort,
    pluginPorts: gateway.pluginPorts,
    close: gateway.close,
  })
}
