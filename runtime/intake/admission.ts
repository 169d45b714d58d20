/**
 * Whose frames are taken: listed devices always, ignored ones never, and for devices seen for the first time the mode
 * decides. A device that has been provisioned stays admitted in every mode but an explicit ignore.
 */
import type { Documents } from '#broker/documents.ts'
import type { Stage } from '#broker/stage.ts'
import type { Settings } from '#config/schema.ts'
import { siteId } from './site-ids.ts'

export type Decision = 'admitted' | 'waiting' | 'ignored'

export interface Admission {
  of(stage: Stage, device: string): Decision
}

export function createAdmission(documents: Documents, settings: Settings['provisioning']): Admission {
  const allowed = new Set([...settings.allow, ...Object.keys(settings.devices)])
  const ignored = new Set(settings.ignore)
  return Object.freeze({
    of(stage: Stage, device: string): Decision {
      if (ignored.has(device)) return 'ignored'
      if (settings.mode === 'auto' || allowed.has(device)) return 'admitted'
      if (documents.find(stage, siteId('Platform', device)) !== undefined) return 'admitted'
      return settings.mode === 'allow-list' ? 'ignored' : 'waiting'
    },
  })
}
