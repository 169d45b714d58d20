/**
 * Versions of entities as entity tags [RFC 9110 8.8.3]: the number of the entity's last change, and a mark of the
 * representation where it is not the plain one. A write with If-Match takes place only where the entity is still in
 * one of the versions named, whatever representation of it was read.
 */
import { crc32 } from 'node:zlib'
import type { Context } from '#ngsi-ld/context/context.ts'
import { invalidRequest } from '#ngsi-ld/values/ngsi-ld-problem.ts'

/** The tag of a representation of an entity in a version. */
export function versionTag(version: number, type: string, context: Context): string {
  if (context.isCore && type === 'application/json') return `"${version}"`
  return `"${version}-${crc32(type + JSON.stringify(context.reference)).toString(36)}"`
}

/** Whether an If-None-Match header names this tag; a weak one is as good here [RFC 9110 13.1.2]. */
export function isNamed(ifNoneMatch: string, tag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
}

const tags = /^\s*(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*\s*$/
const strongTag = /(W\/)?"(\d{1,15})(?:-[0-9a-z]+)?"/g

/**
 * Versions that an If-Match header names; weak tags and those of others match none [RFC 9110 13.1.1]. Undefined
 * where every version will do.
 * @throws ngsi-ld.invalid-request
 */
export function versionsOf(ifMatch: string | undefined): ReadonlySet<number> | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined
  if (!tags.test(ifMatch)) throw invalidRequest('the If-Match header is no list of entity tags')
  const versions = new Set<number>()
  for (const [, weak, version] of ifMatch.matchAll(strongTag)) {
    if (weak === undefined) versions.add(Number(version))
  }
  return versions
}
