/** The other tabs: usual properties, log, and configuration. */
import { element, field, row, send, table } from './dom.js'

const option = (value, isSelected) => element('option', { value, selected: isSelected }, value)
const button = (text, onclick) => element('button', { type: 'button', onclick }, text)

/** Usual value ranges by label, for sensors that declare none. */
export function metadataTab(run) {
  const body = element('tbody')
  const input = (name, more) => element('input', { name, ...more })
  const form = element(
    'form',
    { onsubmit: (event) => run(event, () => add(new FormData(form))) },
    field('Label', input('label', { required: true, maxlength: 100 })),
    field('Minimum', input('min', { type: 'number', step: 'any' })),
    field('Maximum', input('max', { type: 'number', step: 'any' })),
    field('or regular expression', input('regexp', { maxlength: 500 })),
    field('Update interval, seconds', input('updateInterval', { type: 'number', step: 'any' })),
    element('button', {}, 'Save entry'),
  )

  async function add(data) {
    const number = (name) => (data.get(name) === '' ? undefined : Number(data.get(name)))
    const [min, max, updateInterval] = [number('min'), number('max'), number('updateInterval')]
    const entry = { min, max, updateInterval, regexp: data.get('regexp') || undefined }
    await send(`api/properties/${encodeURIComponent(data.get('label'))}`, { method: 'PUT', body: entry })
    form.reset()
    await refresh()
  }

  async function refresh() {
    const { result } = await send('api/properties')
    body.replaceChildren(
      ...result.map(({ label, min, max, regexp, updateInterval }) =>
        row(
          label,
          element('code', {}, regexp ?? `${min ?? ''} to ${max ?? ''}`),
          updateInterval === undefined ? '' : `${updateInterval} s`,
          button('Remove', (event) =>
            run(event, async () => {
              await send(`api/properties/${encodeURIComponent(label)}`, { method: 'DELETE' })
              await refresh()
            }),
          ),
        ),
      ),
    )
  }

  return {
    title: 'Metadata',
    panel: element(
      'div',
      {},
      element(
        'p',
        {},
        'A sensor without a value range or update interval gets that of the property whose label is most similar.',
      ),
      table('Usual properties', ['Label', 'Plausible values', 'Update interval', ''], body),
      element('h3', {}, 'Add or replace an entry'),
      form,
    ),
    refresh,
  }
}

/** The newest log lines of the analyser. */
export function logTab(run) {
  const body = element('tbody')
  const level = element(
    'select',
    { onchange: (event) => run(event, refresh) },
    ...['debug', 'info', 'warn', 'error'].map((name) => option(name)),
  )
  const size = element('input', {
    type: 'number',
    min: 1,
    onchange: (event) => run(event, refresh),
  })

  async function refresh() {
    if (!size.checkValidity()) return
    const query = new URLSearchParams({ level: level.value })
    if (size.value !== '') query.set('limit', size.value)
    const { max, limit, result } = await send(`api/log?${query}`)
    size.max = max
    size.placeholder = limit
    body.replaceChildren(
      ...result.map((line) =>
        row(new Date(line.at).toLocaleTimeString(), line.level, line.event, element('code', {}, line.facts)),
      ),
    )
  }

  return {
    title: 'Log',
    panel: element(
      'div',
      {},
      element('div', { class: 'bar' }, field('Level', level), field('Lines', size)),
      table('Log of the analyser, newest first', ['Time', 'Level', 'Event', 'Facts'], body),
    ),
    refresh,
    isLive: true,
  }
}

/** Environment names and values. */
export function configurationTab(run) {
  const body = element('tbody')

  async function change(setting, options) {
    await send(`api/configuration/${encodeURIComponent(setting)}`, options)
    await refresh()
  }

  function valueCell({ setting, value, isEditable, isChanged }) {
    if (!isEditable) return element('code', {}, value)
    const isFlag = value === 'true' || value === 'false'
    const input = isFlag
      ? element('select', { name: setting }, ...['false', 'true'].map((one) => option(one, one === value)))
      : element('input', { name: setting, value, inputmode: 'decimal', required: true })
    const given = () => (isFlag ? input.value === 'true' : Number(input.value))
    const save = (event) => run(event, () => change(setting, { method: 'PUT', body: { value: given() } }))
    return element(
      'form',
      { class: 'bar', onsubmit: save },
      input,
      element('button', {}, 'Save'),
      isChanged
        ? button('Reset', (event) => run(event, () => change(setting, { method: 'DELETE' })))
        : undefined,
    )
  }

  async function refresh() {
    const { result } = await send('api/configuration')
    body.replaceChildren(
      ...result.map((one) => row(element('code', {}, one.name), one.alias ?? '', valueCell(one))),
    )
  }

  return {
    title: 'Configuration',
    panel: element(
      'div',
      {},
      element(
        'p',
        {},
        'Values come from the settings file and the environment. A value saved here has precedence.',
      ),
      table('Configuration', ['Name', 'Also', 'Value'], body),
    ),
    refresh,
  }
}
