/** The analyser's subscriptions at the broker whose streams it rates, and a form to create one. */
import { element, field, row, send, table, timeText } from './dom.js'

const namesOf = (text) => text.split(/[\s,]+/).filter((name) => name !== '')
const shortName = (type) => type.slice(Math.max(type.lastIndexOf('#'), type.lastIndexOf('/')) + 1)

export function subscriptionsTab(run) {
  const body = element('tbody')
  const broker = element('input', { readonly: true })
  const types = element('input', { name: 'types', required: true, placeholder: 'iot-stream:IotStream' })
  const attributes = element('input', { name: 'attributes', placeholder: 'all' })
  const form = element(
    'form',
    { onsubmit: (event) => run(event, create) },
    field('Broker', broker),
    field('Entity types', types),
    field('Attributes', attributes),
    element('button', {}, 'Create'),
  )

  async function create() {
    const watched = namesOf(attributes.value)
    const given = { types: namesOf(types.value), ...(watched.length === 0 ? {} : { attributes: watched }) }
    await send('api/subscriptions', { method: 'POST', body: given })
    form.reset()
    await refresh()
  }

  async function remove(id) {
    await send(`api/subscriptions/${encodeURIComponent(id)}`, { method: 'DELETE' })
    await refresh()
  }

  const button = (id) =>
    element('button', { type: 'button', onclick: (event) => run(event, () => remove(id)) }, 'Delete')

  async function refresh() {
    const { result } = await send('api/subscriptions')
    broker.value = result[0]?.broker ?? ''
    body.replaceChildren(
      ...result.map((one) =>
        row(
          element('span', { title: one.types.join(' ') }, one.types.map(shortName).join(', ')),
          element('code', {}, one.id),
          one.broker,
          one.status,
          one.lastNotification === null ? '' : timeText(one.lastNotification),
          String(one.timesSent ?? ''),
          one.isNeeded ? 'needed' : button(one.id),
        ),
      ),
    )
  }

  return {
    title: 'Subscriptions',
    panel: element(
      'div',
      {},
      table(
        'Subscriptions of the analyser',
        ['Types', 'Id', 'Broker', 'Status', 'Latest notification', 'Sent', ''],
        body,
      ),
      element('h3', {}, 'Create a subscription'),
      form,
    ),
    refresh,
  }
}
