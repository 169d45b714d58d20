/** The public interface for bridges and plugins; the only re-exporting module of the product. */

export type {
  BrokerAnswer,
  BrokerPort,
  BrokerRequest,
  ListAnswer,
  RemoteBroker,
  RemoteIdentity,
  WrittenAnswer,
} from './broker-port.ts'
export type {
  ChangeBatch,
  ChangesPort,
  EntityState,
  Follower,
  Observation,
  PastObservation,
} from './changes-port.ts'
export type { PluginDatabase, PluginStatement, Row } from './database-port.ts'
export { type Bridge, type Checked, defineBridge, type Proposal, type SettingProblem } from './decoder.ts'
export { createDecoding, type Decoding, isNoValue, readingsMax, undecodable } from './decoding.ts'
export type {
  AmqpDeclaration,
  AmqpMessage,
  ExchangeConnection,
  ExchangeHandlers,
  OpenExchanges,
  PublishOutcome,
  PublishOwn,
} from './exchanges-port.ts'
export type {
  ChangeValidity,
  ForwardingPort,
  ForwardPort,
  ForwardTarget,
  ProxiedRequest,
} from './forwarding-port.ts'
export type { KeyValuePort, KeyValueServer, KeyValueStore } from './key-value-port.ts'
export type {
  LinearModel,
  ModelDescription,
  ModelFile,
  ModelKind,
  ModelSubject,
  ModelsPort,
} from './models-port.ts'
export { jsonOf, type Parsed, textOf } from './payload.ts'
export type { Decoded, DecodeProblem, Frame, Json, Reading, TimeSource } from './pipeline.ts'
export {
  type Capabilities,
  type Capability,
  definePlugin,
  type Host,
  type HostBase,
  type Plugin,
  type Running,
} from './plugin.ts'
export type { ReceivedRequest } from './received-request.ts'
export type { DirectRequest, ListRequest, Reply, RouteEnvironment, WebSocketLike } from './route.ts'
export type {
  SourceBroker,
  SourceConnection,
  SourceHandlers,
  SourceMessage,
  SourcePlace,
  SourcesPort,
} from './sources-port.ts'
export { type HistoryRange, type PastValue, type StreamKey, streamHistory } from './stream-history.ts'
