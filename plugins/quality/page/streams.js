/** Data sources: each stream with its metrics, their rated values over time, and its metadata. */
import { counted, element, field, send, timeText } from './dom.js'
import { sparkline } from './sparkline.js'

const pageSize = 20
const historyMs = 30_000
const metrics = [
  'completeness',
  'plausibility',
  'frequency',
  'timeliness',
  'artificiality',
  'concordance',
  'age',
]

export function streamsTab(run) {
  const cards = new Map()
  const list = element('div', { class: 'streams' })
  const count = element('p', { role: 'status' }, 'Loading')
  const filter = element('input', {
    type: 'search',
    placeholder: 'label or id',
    oninput: (event) => run(event, () => show(0)),
  })
  const back = element(
    'button',
    { type: 'button', onclick: (event) => run(event, () => show(offset - pageSize)) },
    'Back',
  )
  const next = element(
    'button',
    { type: 'button', onclick: (event) => run(event, () => show(offset + pageSize)) },
    'Next',
  )
  let offset = 0
  let asked = ''

  function show(at) {
    offset = Math.max(0, at)
    return refresh()
  }

  async function refresh() {
    const query = new URLSearchParams({ limit: pageSize + 1, offset, text: filter.value.trim() })
    asked = String(query)
    const answer = await send(`api/streams?${query}`)
    // The reader asked for something else meanwhile.
    if (asked !== String(query)) return
    const rows = answer.result.slice(0, pageSize)
    count.textContent = `${counted(answer.count, 'stream is known', 'streams are known')}.`
    back.disabled = offset === 0
    next.disabled = answer.result.length <= pageSize
    for (const id of [...cards.keys()]) if (!rows.some((one) => one.id === id)) cards.delete(id)
    for (const one of rows) {
      if (!cards.has(one.id)) cards.set(one.id, streamCard(one.id))
      cards.get(one.id).update(one)
    }
    const places = rows.map(({ id }) => cards.get(id).place)
    if (places.length !== list.childElementCount || places.some((place, i) => place !== list.children[i]))
      list.replaceChildren(...places)
    for (const card of cards.values()) card.draw()
    await Promise.all([...cards.values()].map((card) => card.readHistory()))
  }

  return {
    title: 'Data sources',
    panel: element(
      'div',
      {},
      element('div', { class: 'bar' }, field('Filter', filter), back, next),
      count,
      list,
    ),
    refresh,
    isLive: true,
  }
}

function streamCard(id) {
  const heading = element('h3')
  const seen = element('p', { class: 'seen' })
  const facts = element('dl')
  const tiles = new Map(metrics.map((name) => [name, metricTile(name)]))
  const place = element(
    'article',
    { 'data-stream': id },
    heading,
    element('code', {}, id),
    seen,
    element('div', { class: 'tiles' }, ...[...tiles.values()].map((tile) => tile.place)),
    element('details', {}, element('summary', {}, 'Metadata and service'), facts),
  )
  let readAt = Number.NEGATIVE_INFINITY
  let histories = {}
  let current = {}

  function draw() {
    for (const [name, tile] of tiles) {
      const past = histories[name] ?? []
      const rated = current[name]?.rated
      tile.draw(rated === undefined ? past : [...past, [Date.now(), rated]])
    }
  }

  return {
    place,
    update(one) {
      current = one.quality
      heading.textContent = one.label ?? id.slice(id.lastIndexOf(':') + 1)
      seen.textContent = `${counted(one.observations, 'value')}, the latest of ${timeText(one.lastObservedAt)}`
      for (const [name, tile] of tiles) tile.update(one.quality[name])
      facts.replaceChildren(
        ...factsOf(one).flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]),
      )
    },
    draw,
    /** Reads the past values now and then; newer ones are added from the current quality. */
    async readHistory() {
      if (performance.now() - readAt < historyMs) return
      readAt = performance.now()
      histories = await send(`api/histories/${encodeURIComponent(id)}`)
      draw()
    },
  }
}

function metricTile(name) {
  const figure = element('strong', {}, '-')
  const absolute = element('small')
  const line = sparkline()
  const place = element(
    'div',
    { class: 'tile', 'data-metric': name },
    element('span', {}, name),
    figure,
    absolute,
    line.place,
  )
  return {
    place,
    draw: line.draw,
    update({ rated, absolute: value } = {}) {
      const isUnknown = rated === undefined && value === undefined
      place.hidden = isUnknown
      figure.textContent = rated === undefined ? '' : rated.toFixed(2)
      place.dataset.level =
        rated === undefined ? 'none' : rated >= 0.8 ? 'good' : rated >= 0.4 ? 'fair' : 'bad'
      absolute.textContent = value === undefined ? '' : absoluteText(name, value)
    },
  }
}

function absoluteText(name, value) {
  if (name === 'age' || name === 'frequency') return durationText(value * 1000)
  if (name === 'completeness') return `${value} missing`
  if (name === 'plausibility') return value === 1 ? 'plausible' : 'not plausible'
  return ''
}

function durationText(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`
  return `${Math.round(ms / 360_000) / 10} h`
}

function factsOf({ updateIntervalMs, range, place, isInferred, describedBy, qoi, quality }) {
  const percent = (share) => (share === undefined ? undefined : `${(share * 100).toFixed(1)} %`)
  const facts = [
    ['update interval', updateIntervalMs && durationText(updateIntervalMs)],
    ['plausible values', range && (range.regexp ?? `${range.min ?? ''} to ${range.max ?? ''}`)],
    ['place (longitude, latitude)', place?.join(', ')],
    ['inferred', isInferred ? 'yes' : undefined],
    ['described by', describedBy.join(' ')],
    ['quality entity', qoi],
    ['received in 24 hours', percent(quality.share)],
    [
      'delivery delay',
      quality.deliveryDelay === undefined ? undefined : durationText(quality.deliveryDelay * 1000),
    ],
    ['delivery ratio', percent(quality.deliveryRatio)],
    ['availability', percent(quality.availability)],
    ['missing while the gateway was down', quality.excused || undefined],
  ]
  return facts.flatMap(([name, text]) => (text === undefined || text === '' ? [] : [[name, String(text)]]))
}
