/**
 * The page of the quality analyser: data sources, subscriptions, metadata, log and configuration. It loads
 * nothing from other origins and contains no data; if the gateway requires a token, it prompts for it.
 */
import './page.css'
import { counted, element, field, send, token } from './dom.js'
import { streamsTab } from './streams.js'
import { subscriptionsTab } from './subscriptions.js'
import { configurationTab, logTab, metadataTab } from './tabs.js'

const problem = element('p', { class: 'problem', role: 'alert', hidden: true })
const state = element('p', { class: 'state' })
const key = element('input', { type: 'password', autocomplete: 'off', required: true })
const login = element(
  'form',
  { class: 'bar', hidden: true, onsubmit: enter },
  field('Token', key),
  element('button', {}, 'Use token'),
)

/** Runs the work of a form or a button, and shows why it failed. */
async function run(event, work) {
  event.preventDefault()
  await attempt(work)
}

async function attempt(work) {
  try {
    await work()
    problem.hidden = true
    login.hidden = true
  } catch (error) {
    login.hidden = error.status !== 401
    problem.textContent = error.status === 401 ? 'The gateway requires its token.' : error.message
    problem.hidden = false
  }
}

function enter(event) {
  token.set(key.value.trim())
  void run(event, refresh)
}

const tabs = {
  streams: streamsTab(run),
  subscriptions: subscriptionsTab(run),
  metadata: metadataTab(run),
  log: logTab(run),
  configuration: configurationTab(run),
}
const links = Object.entries(tabs).map(([name, { title }]) => element('a', { href: `#${name}` }, title))
const main = element('main', { tabindex: -1 })

const shownName = () => {
  const name = location.hash.slice(1)
  return Object.hasOwn(tabs, name) ? name : 'streams'
}

async function refresh() {
  const name = shownName()
  await tabs[name].refresh()
  await showState()
}

async function showState() {
  const { streams, reading, waiting } = await send('status')
  state.textContent = reading?.isReading
    ? `Reading what exists: ${counted(reading.entities, 'entity', 'entities')}, ${counted(reading.observations, 'value')}`
    : `${counted(streams, 'stream')}, ${counted(waiting, 'quality waits', 'qualities wait')} to be written`
}

async function open() {
  const name = shownName()
  const { title, panel } = tabs[name]
  for (const link of links) {
    if (link.hash === `#${name}`) link.setAttribute('aria-current', 'page')
    else link.removeAttribute('aria-current')
  }
  main.replaceChildren(element('h2', {}, title), panel)
  await attempt(refresh)
}

/** Refreshes the shown tab; one request at a time, and none while the page is hidden. */
async function keepCurrent() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000))
    if (tabs[shownName()].isLive && !document.hidden) await attempt(refresh)
  }
}

document.body.prepend(
  element(
    'header',
    {},
    element('h1', {}, 'Quality of streams'),
    state,
    element('nav', { 'aria-label': 'Tabs' }, ...links),
  ),
  problem,
  login,
  main,
)
addEventListener('hashchange', open)
void open().then(keepCurrent)
