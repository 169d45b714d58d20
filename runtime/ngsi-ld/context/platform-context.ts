/**
 * The one @context document of the platform: every prefix its components use and every term with a single meaning.
 * The gateway publishes it as it stands here. Left out, and written with their prefix, are `observes` (of sosa and
 * of iot-stream, both occur on streams) and the terms that the core owns: `location`, `Point`, `min`, `max`.
 * Older addresses of an ontology have prefixes of their own: `qoi2`, `faultdetection`, `fault-detection`.
 */

import { assert } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from './context.ts'
import document from './platform-context.json' with { type: 'json' }

/** The document as published, with its `@context` member. */
export const platformContextDocument: Json = document

/** The document compiled, with the address it is published at as its reference. */
export function compilePlatformContext(url: string, core?: Context): Context {
  const context = compileContext(url, (wanted) => (wanted === url ? document : undefined), core)
  assert('expand' in context, 'the platform context needs no other document')
  return context
}
