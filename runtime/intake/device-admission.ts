/**
 * Decides which devices are admitted: listed devices always, ignored ones never; for new devices the mode
 * decides. The settings come first, then the operator's choices. A device that has been provisioned stays
 * admitted in every mode, unless it is explicitly ignored.
 */

import type { Stage } from '#broker/commit/stage.ts'
import type { DocumentDrafts } from '#broker/state/document-drafts.ts'
import type { Settings } from '#config/schema/settings-schema.ts'
import type { Choices } from './choices.ts'
import { siteId } from './site-ids.ts'

export type Decision = 'admitted' | 'waiting' | 'ignored'

export interface DeviceAdmission {
  of(stage: Stage, device: string): Decision
  /** The decision of the settings about a device; undefined when they leave it open. */
  settled(device: string): 'admitted' | 'ignored' | undefined
}

export function createDeviceAdmission(
  { documents, choices }: { documents: DocumentDrafts; choices: Pick<Choices, 'device'> },
  settings: Settings['provisioning'],
): DeviceAdmission {
  const allowed = new Set([...settings.allow, ...Object.keys(settings.devices)])
  const ignored = new Set(settings.ignore)
  const settled = (device: string): 'admitted' | 'ignored' | undefined => {
    if (ignored.has(device)) return 'ignored'
    return allowed.has(device) ? 'admitted' : undefined
  }
  return Object.freeze({
    settled,
    of(stage: Stage, device: string): Decision {
      const fixed = settled(device)
      if (fixed !== undefined) return fixed
      const decision = choices.device(device)?.decision
      if (decision !== undefined) return decision === 'accepted' ? 'admitted' : 'ignored'
      if (settings.mode === 'auto') return 'admitted'
      if (documents.find(stage, siteId('Platform', device)) !== undefined) return 'admitted'
      return settings.mode === 'allow-list' ? 'ignored' : 'waiting'
    },
  })
}
