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
   * Watched broker. mdr: this gateway; or the address of any NGSI-LD broker (NGSI_ADDRESS), whose streams are
   * watched instead.
   */
  broker: setting(kind.backend('mdr'), 'mdr'),
  /** Tenant at that broker. Default: its default tenant. */
  tenant: maybe(kind.label()),
  /**
   * File of the token for that broker. Its first line is sent as a Bearer token. Mode 0600. Read again for
   * each request.
   */
  tokenFile: maybe(kind.fileName()),
  /** Certificate authorities. PEM file, in addition to those of the system and of outbound.caFile. */
  caFile: maybe(kind.fileName()),
  /** Pages per second. Maximum request rate while that broker is read. */
  pagesPerSecond: setting(kind.above0('pages'), 50),
  /**
   * Address for notifications. Base address of the callbacks at a remote broker, without /monitoring/callback
   * (FD_CALLBACK). Default: the address of the listener.
   */
  callbackUrl: maybe(kind.baseUrl()),
  /**
   * Virtual sensor creator. Address of the component that replaces a broken sensor (VS_CREATER_ADDRESS).
   * Default: the one of this gateway.
   */
  virtualSensors: maybe(kind.baseUrl()),
  /**
   * Distance of neighbours. How far away streams of the same property may be to count as neighbours of a
   * stream.
   */
  neighbourMeters: setting(kind.wholeNumber(0, 1_000_000, 'metres'), 20_000),
  /**
   * Age of faults. This gateway deletes a Fault this long after its end was written. One that lasts stays,
   * and so do Faults at another broker.
   */
  keepFaultsDays: setting(kind.wholeNumber(1, 3_650, 'days'), 30),
})
