/**
 * Items of notifications as JSON text, cached while they are sent: subscriptions that report a change in the
 * same form share its rendering. Bounded by `limits.notificationItemsBytes`.
 */
import { limits } from '#base/limits/limits.ts'
import type { Context } from '#ngsi-ld/context/context.ts'
import type { Subscription } from '#ngsi-ld/subscription/subscription.ts'

export interface RenderedItems {
  /**
   * Returns the items of a change, or renders and caches them.
   *
   * @param form what determines the items besides the change, from `formOf`.
   * @param change the stored text of the change.
   */
  of(form: string, change: string, render: () => readonly string[]): readonly string[]
  /** Equal for subscriptions that render a change alike; undefined if items depend on other entities too. */
  formOf(subscription: Subscription, context: Context): string | undefined
}

export function createRenderedItems(): RenderedItems {
  /** The items of each change by form, oldest change first. */
  const byChange = new Map<string, Map<string, readonly string[]>>()
  /** Characters of changes, forms and items. */
  let size = 0
  const numbers = new WeakMap<Context, number>()
  let lastNumber = 0

  function numberOf(context: Context): number {
    const number = numbers.get(context) ?? ++lastNumber
    numbers.set(context, number)
    return number
  }

  function makeRoom(): void {
    for (const [change, forms] of byChange) {
      if (size <= limits.notificationItemsBytes.value) return
      byChange.delete(change)
      size -= change.length
      for (const [form, items] of forms) size -= sizeOf(form, items)
    }
  }

  return {
    of(form, change, render) {
      let forms = byChange.get(change)
      const cached = forms?.get(form)
      if (cached !== undefined) return cached
      const items = render()
      const itemsSize = sizeOf(form, items)
      // It would only displace all others.
      if (change.length + itemsSize > limits.notificationItemsBytes.value) return items
      if (forms === undefined) {
        forms = new Map()
        byChange.set(change, forms)
        size += change.length
      }
      forms.set(form, items)
      size += itemsSize
      makeRoom()
      return items
    },
    formOf({ notification, ...subscription }, context) {
      const { join, endpoint, ...parameters } = notification
      if (join !== undefined && join !== '@none') return undefined
      const { datasetId, lang, ngsildConformance, watchedAttributes, notificationTrigger } = subscription
      return JSON.stringify([
        numberOf(context),
        parameters,
        endpoint.accept,
        endpoint.receiverInfo,
        [datasetId, lang, ngsildConformance, watchedAttributes, notificationTrigger],
      ])
    },
  }
}

const sizeOf = (form: string, items: readonly string[]): number =>
  items.reduce((sum, text) => sum + text.length, form.length)
