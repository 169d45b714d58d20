/** Patterns match whole levels; their filters match exactly the same topics. */
import { expect, it } from 'vitest'
import { filterOf, matchTopic, parseTopicPattern } from './topic-pattern.ts'

const match = (pattern: string, topic: string) => matchTopic(parseTopicPattern(pattern)!, topic)

it('names levels', () => {
  expect(match('site/{device}/x/{field}', 'site/a b/x/t')).toEqual({ device: 'a b', field: 't' })
  expect(match('site/{device}/+', 'site/a/')).toEqual({ device: 'a' })
  expect(match('{device}/#', 'a')).toEqual({ device: 'a' })
  expect(match('{device}/#', 'a/b/c')).toEqual({ device: 'a' })
})

it('does not match other topics', () => {
  for (const topic of ['site', 'site/a', 'site/a/x/t/u', 'Site/a/x', 'site//x', ''])
    expect([topic, match('site/{device}/x', topic)]).toEqual([topic, undefined])
})

it('claims its topics by a filter', () => {
  expect(filterOf(parseTopicPattern('site/{device}/+/x/#')!)).toBe('site/+/+/x/#')
})

it('rejects invalid patterns', () => {
  for (const text of ['', 'a/#/b', 'a+/b', 'x{device}', '{de vice}', '{a}/{a}', 'a/{', '\0', '{__proto__}'])
    expect([text, parseTopicPattern(text)]).toEqual([text, undefined])
})
