/**
 * MQTT sessions, retained messages and wills as rows. The MQTT library is not known here.
 */
export const sessionWrites = {} as const
