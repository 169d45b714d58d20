/** Elements and requests of the page. Texts are always set as text, never as HTML. */

/** Creates an element. A property `on...` is a listener; `children` are elements or texts. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value)
    else made.setAttribute(key, value === true ? '' : String(value))
  }
  made.append(...children.filter((child) => child !== undefined))
  return made
}

/** A row of a table. */
export const row = (...cells) =>
  element(
    'tr',
    {},
    ...cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : element('td', {}, cell))),
  )

/** A table with a caption for screen readers and column headings; `body` receives the rows. */
export function table(caption, headings, body) {
  return element(
    'div',
    { class: 'wide' },
    element(
      'table',
      {},
      element('caption', {}, caption),
      element(
        'thead',
        {},
        element('tr', {}, ...headings.map((text) => element('th', { scope: 'col' }, text))),
      ),
      body,
    ),
  )
}

/** A number with its noun. */
export const counted = (number, noun, plural = `${noun}s`) => `${number} ${number === 1 ? noun : plural}`

/** A labelled form field. */
export const field = (label, input) => element('label', {}, element('span', {}, label), input)

const folder = location.pathname.replace(/\/ui\/?$/, '/')
const kept = 'selvedge-token'

export const token = {
  get: () => sessionStorage.getItem(kept) ?? '',
  set: (text) => sessionStorage.setItem(kept, text),
}

/** Sends a request to the analyser. Throws an Error with the reason; its `status` is 401 without the token. */
export async function send(path, { method = 'GET', body } = {}) {
  const headers = { Accept: 'application/json' }
  if (token.get() !== '') headers.Authorization = `Bearer ${token.get()}`
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  let answer
  try {
    answer = await fetch(folder + path, { method, headers, body: body && JSON.stringify(body) })
  } catch {
    throw new Error('the gateway cannot be reached')
  }
  const text = await answer.text()
  let json
  try {
    json = text === '' ? undefined : JSON.parse(text)
  } catch {
    json = undefined
  }
  if (answer.ok) return json
  const why = json?.detail ?? json?.title ?? answer.statusText
  throw Object.assign(new Error(`${answer.status}: ${why}`), { status: answer.status })
}

/** A time as the reader's clock shows it. */
export const timeText = (iso) =>
  iso === undefined || iso === null ? 'never' : new Date(iso).toLocaleString()
