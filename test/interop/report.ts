/**
 * The page about brokers that the uplink was run against. Each broker has a part of its own, found by its name; a new run
 * replaces the figures between its marks and leaves alone what people wrote around them. Pure.
 */
import { kindNames } from './kinds.ts'
import type { SceneResult } from './scenes.ts'

export interface Run {
  /** Name and version of the broker. */
  readonly broker: string
  readonly date: string
  readonly hasHistory: boolean
  readonly selvedge: string
  readonly command: string
  readonly ways: readonly string[]
  readonly scenes: readonly SceneResult[]
}

export function isSame({ scenes }: Run): boolean {
  return scenes.every(({ seconds }) => seconds !== undefined)
}

/** The page with the figures of this run in it. */
export function pageWith(page: string, run: Run): string {
  const name = run.broker.replace(/ .*$/, '')
  const [begin, end] = [`<!-- figures of ${name} -->`, `<!-- end of ${name} -->`]
  const figures = `${begin}\n${figuresOf(run)}\n${end}`
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to === -1) return `${page.trimEnd()}\n\n## ${name}\n\n${figures}\n`
  return page.slice(0, from) + figures + page.slice(to + end.length)
}

function figuresOf(run: Run): string {
  const { broker, date, selvedge, hasHistory, ways, scenes } = run
  const rows = scenes.map(({ name, observations, seconds, difference }) => {
    const { entities, missing, repeated, foreign } = difference
    const history = hasHistory ? `${missing} / ${repeated} / ${foreign}` : 'not kept there'
    const after = seconds === undefined ? '**never**' : `${seconds.toFixed(1)} s`
    return `| ${name} | ${observations} | ${after} | ${entities.length} | ${history} |`
  })
  return [
    `**${broker}**, ${date}, by Selvedge ${selvedge}: \`${run.command}\``,
    '',
    '| Scene | Observations | Both ends the same after | Differences of entities | Observations missing / repeated / foreign there |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
    ...sameKinds(ways, scenes.at(-1)?.difference.entities ?? []),
  ].join('\n')
}

function sameKinds(ways: readonly string[], others: readonly string[]): readonly string[] {
  const odd = kindNames.filter((kind) => ways.some((line) => line.includes(`RUN-${kind} `)))
  const same = kindNames.filter((kind) => !odd.includes(kind))
  const listed = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0
      ? []
      : ['', title, '', ...lines.map((line) => `- \`${line.replace('urn:ngsi-ld:InteropThing:RUN-', '')}\``)]
  return [
    `Kinds of attribute that are the same at both ends: ${same.join(', ')}.`,
    ...listed('What the broker makes of others by itself:', ways),
    ...listed('What differs at the end:', others),
  ]
}
