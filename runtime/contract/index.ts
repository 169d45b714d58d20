/** The public interface for bridges and plugins; the only re-exporting module of the product. */
export { type Bridge, type Checked, defineBridge, type Proposal, type SettingProblem } from './decoder.ts'
export { createDecoding, type Decoding, isNoValue, readingsMax, undecodable } from './decoding.ts'
export { jsonOf, type Parsed, textOf } from './payload.ts'
export type { Decoded, DecodeProblem, Frame, Json, Reading, TimeSource } from './pipeline.ts'
export {
  type BrokerAnswer,
  type BrokerPort,
  type BrokerRequest,
  type Capabilities,
  type Capability,
  type ChangeBatch,
  type ChangesPort,
  definePlugin,
  type EntityState,
  type Follower,
  type Host,
  type HostBase,
  type ListAnswer,
  type ListRequest,
  type ObservedValue,
  type Plugin,
  type PluginDatabase,
  type PluginStatement,
  type RemoteBroker,
  type RemoteIdentity,
  type RouteEnvironment,
  type Row,
  type Running,
  type WebSocketLike,
  type WrittenAnswer,
} from './plugin.ts'
