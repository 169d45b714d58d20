/** A store of copies outside the gateway, such as Redis. */

export interface KeyValueServer {
  /** redis[s]://host[:port] */
  readonly url: string
  readonly username?: string | undefined
  /** Its first line is the password. Mode 0600. */
  readonly passwordFile?: string | undefined
  /** PEM file of its certificate authorities, in addition to those of the system. */
  readonly caFile?: string | undefined
}

export interface KeyValueStore {
  /** The value; undefined if there is none, or if the server does not answer in time. Never rejects. */
  get(key: string): Promise<Buffer | undefined>
  /** Stores a copy; does nothing without a connection. @param expiresMs undefined if it does not expire. */
  set(key: string, value: Buffer | string, expiresMs?: number): void
  remove(key: string): void
  /** Why there is no connection; undefined if there is one. */
  failure(): string | undefined
  close(): void
}

export interface KeyValuePort {
  /**
   * Connects in the background, and again after each failure.
   * @param ready called for each connection: copies that were not sent before are missing.
   * @throws GatewayError config.invalid for an unreadable file.
   */
  open(server: KeyValueServer, ready: () => void): KeyValueStore
}
