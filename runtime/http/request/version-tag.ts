/**
 * Entity tags [RFC 9110 8.8.3]: the number of the entity's last change, followed by a mark for
 * representations other than the plain one. A write with If-Match is done only if the entity is still in one
 * of the named versions; the representation read does not matter.
 */
import { crc32 } from 'node:zlib'
import type { Context } from '#ngsi-ld/context/context.ts'
import { invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** The tag of one representation of an entity's version. */
export function versionTag(version: number, type: string, context: Context): string {
  if (context.isCore && type === 'application/json') return `"${version}"`
  return `"${version}-${crc32(type + JSON.stringify(context.reference)).toString(36)}"`
}

/** Whether an If-None-Match header names this tag; weak comparison applies [RFC 9110 13.1.2]. */
export function isNamed(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
}

const tags = /^\s*(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*\s*$/
const strongTag = /(W\/)?"(\d{1,15})(?:-[0-9a-z]+)?"/g

/**
 * The versions that an If-Match header names; weak and foreign tags match none [RFC 9110 13.1.1]. Undefined
 * if any version matches.
 *
 * @throws ngsi-ld.invalid-request
 */
export function versionsOf(ifMatch: string | undefined): ReadonlySet<number> | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined
  if (!tags.test(ifMatch)) throw invalidRequest('the If-Match header must be * or a list of entity tags')
  const versions = new Set<number>()
  for (const [, weak, version] of ifMatch.matchAll(strongTag)) {
    if (weak === undefined) versions.add(Number(version))
  }
  return versions
}
