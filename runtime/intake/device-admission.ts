/**
 * Whose frames are taken: listed devices always, ignored ones never, and for devices seen for the first time the mode
 * decides. The settings come first, then what an operator chose while the gateway ran. A device that has been provisioned
 * stays admitted in every mode but an explicit ignore.
 */

import type { Stage } from '#broker/commit/stage.ts'
import type { Documents } from '#broker/state/document-drafts.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Choices } from './choices.ts'
import { siteId } from './site-ids.ts'

export type Decision = 'admitted' | 'waiting' | 'ignored'

export interface Admission {
  of(stage: Stage, device: string): Decision
  /** What the settings say of a device; undefined where they leave it open. */
  settled(device: string): 'admitted' | 'ignored' | undefined
}

export function createAdmission(
  { documents, choices }: { documents: Documents; choices: Pick<Choices, 'device'> },
  settings: Settings['provisioning'],
): Admission {
  const allowed = new Set([...settings.allow, ...Object.keys(settings.devices)])
  const ignored = new Set(settings.ignore)
  const settled = (device: string): 'admitted' | 'ignored' | undefined => {
    if (ignored.has(device)) return 'ignored'
    return allowed.has(device) ? 'admitted' : undefined
  }
  return Object.freeze({
    settled,
    of(stage: Stage, device: string): Decision {
      const said = settled(device)
      if (said !== undefined) return said
      const decision = choices.device(device)?.decision
      if (decision !== undefined) return decision === 'accepted' ? 'admitted' : 'ignored'
      if (settings.mode === 'auto') return 'admitted'
      if (documents.find(stage, siteId('Platform', device)) !== undefined) return 'admitted'
      return settings.mode === 'allow-list' ? 'ignored' : 'waiting'
    },
  })
}
