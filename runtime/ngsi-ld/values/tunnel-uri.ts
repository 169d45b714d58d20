/**
 * Addresses of gateways that nobody can connect to and that hold a tunnel open instead: `urn:selvedge:tunnel:` with the
 * name that the gateway has in Via, and a path where one is meant.
 */
const prefix = 'urn:selvedge:tunnel:'
const form = /^urn:selvedge:tunnel:([!#$%&'*+.^_`|~0-9A-Za-z-]+)(\/.*)?$/

export const isTunnelled = (uri: string): boolean => form.test(uri)

export const tunnelUri = (alias: string): string => prefix + alias

/** Whose tunnel, and which path behind it; undefined when it is no such address. */
export function tunnelled(uri: string): { readonly alias: string; readonly path: string } | undefined {
  const [, alias, path = '/'] = form.exec(uri) ?? []
  return alias === undefined ? undefined : { alias, path }
}
