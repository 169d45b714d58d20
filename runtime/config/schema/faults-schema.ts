/** Settings of fault detection; a section of the one schema. */
import { maybe, section, setting } from './setting.ts'
import * as kind from './value-kinds.ts'

export const faults = section('Fault detection', {
  /** Enabled. false: fault detection is not started. */
  enabled: setting(kind.flag(), true),
  /**
   * Own port. Serves stop, restart and status (FD_PORT; 8082 in the original); they are also under /faults on
   * the main port.
   */
  port: setting(kind.listenPort(), 'off'),
  /** Host of that port. Name or address to bind to (FD_HOST). Default: host. */
  host: maybe(kind.hostName()),
  /**
   * Virtual sensor creator. Address of the component that replaces a broken sensor (VS_CREATER_ADDRESS).
   * Default: the one of this gateway.
   */
  virtualSensors: maybe(kind.baseUrl()),
})
