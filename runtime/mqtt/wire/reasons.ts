/**
 * Reason codes of MQTT 5 (section 2.4) that this broker sends and reads. Clients of MQTT 3.1 and 3.1.1 never
 * get one: their connection is closed instead.
 */
export const reasons = {
  success: 0x00,
  /** In a DISCONNECT: the will is published nevertheless. */
  disconnectWithWill: 0x04,
  noMatchingSubscribers: 0x10,
  noSubscriptionExisted: 0x11,
  unspecifiedError: 0x80,
  malformedPacket: 0x81,
  protocolError: 0x82,
  clientIdentifierNotValid: 0x85,
  badUserNameOrPassword: 0x86,
  notAuthorized: 0x87,
  serverUnavailable: 0x88,
  serverBusy: 0x89,
  serverShuttingDown: 0x8b,
  badAuthenticationMethod: 0x8c,
  keepAliveTimeout: 0x8d,
  sessionTakenOver: 0x8e,
  topicFilterInvalid: 0x8f,
  topicNameInvalid: 0x90,
  packetIdentifierNotFound: 0x92,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  packetTooLarge: 0x95,
  quotaExceeded: 0x97,
  sharedSubscriptionsNotSupported: 0x9e,
} as const

/** The fault of a packet: a reason code for MQTT 5 clients, and a text for the log. */
export interface PacketFault {
  readonly code: number
  readonly reason: string
}

export const fault = (code: number, reason: string): PacketFault => ({ code, reason })
export const protocolError = (reason: string): PacketFault => fault(reasons.protocolError, reason)
export const malformed = (reason: string): PacketFault => fault(reasons.malformedPacket, reason)

/** Reason codes from 0x80 on are failures. */
export const isFailure = (code: number): boolean => code >= 0x80
