/**
 * The @context document of the platform: every prefix that its components use and every term with a single
 * meaning. The gateway publishes it unchanged. It omits `observes` (sosa and iot-stream both define it for
 * streams) and the terms that the core owns: `location`, `Point`, `min`, `max`; clients write these with
 * their prefix. Older addresses of an ontology have separate prefixes: `qoi2`, `faultdetection`,
 * `fault-detection`.
 */

import { assert } from '#base/register/errors.ts'
import type { Json } from '#contract/pipeline.ts'
import { type Context, compileContext } from './context.ts'
import document from './platform-context.json' with { type: 'json' }

/** The document as published, with its `@context` member. */
export const platformContextDocument: Json = document

/** The compiled document; responses refer to its published address. */
export function compilePlatformContext(url: string, core?: Context): Context {
  const context = compileContext(url, (wanted) => (wanted === url ? document : undefined), core)
  assert('expand' in context, 'the platform context refers to no other document')
  return context
}
