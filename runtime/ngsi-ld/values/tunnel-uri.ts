/**
 * Addresses of gateways that accept no connections and hold a tunnel open instead: `urn:selvedge:tunnel:`,
 * the gateway's name in Via, and an optional path.
 */
const prefix = 'urn:selvedge:tunnel:'
const form = /^urn:selvedge:tunnel:([!#$%&'*+.^_`|~0-9A-Za-z-]+)(\/.*)?$/

export const isTunnelled = (uri: string): boolean => form.test(uri)

export const tunnelUri = (alias: string): string => prefix + alias

/** The gateway that owns the tunnel and the path behind it; undefined for any other address. */
export function tunnelled(uri: string): { readonly alias: string; readonly path: string } | undefined {
  const [, alias, path = '/'] = form.exec(uri) ?? []
  return alias === undefined ? undefined : { alias, path }
}
