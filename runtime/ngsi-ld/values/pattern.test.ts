/** Patterns case by case: matches, rejections, and bounded time. */
import { describe, expect, it } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { isGatewayError } from '#base/register/errors.ts'
import { compilePattern, createQueryBudget, type PatternBudget } from './pattern.ts'

const matches = (pattern: string, text: string): boolean => compilePattern(pattern).test(text)

function codeOf(pattern: string): string {
  try {
    compilePattern(pattern)
    return 'none'
  } catch (error) {
    return isGatewayError(error) ? error.code : 'not ours'
  }
}

describe('a pattern', () => {
  it.each([
    ['abc', 'xxabcxx', true],
    ['abc', 'ab', false],
    ['', '', true],
    ['', 'anything', true],
    ['^abc$', 'abc', true],
    ['^abc$', 'abcd', false],
    ['^abc$', 'xabc', false],
    ['^$', '', true],
    ['$^', '', true],
    ['^$', 'a', false],
    ['a$b', 'a$b', false],
    ['^a|b$', 'ax', true],
    ['^a|b$', 'xb', true],
    ['^a|b$', 'xbx', false],
    ['(^a|x)b', 'ab', true],
    ['(^a|x)b', 'cab', false],
    ['(^a|x)b', 'cxb', true],
    ['a.c', 'abc', true],
    ['a.c', 'a\nc', false],
    ['a.c', 'a😀c', true],
    ['^.$', '😀', true],
    ['ab*c', 'ac', true],
    ['ab+c', 'ac', false],
    ['ab?c', 'abc', true],
    ['^a{2}$', 'aa', true],
    ['^a{2}$', 'aaa', false],
    ['^a{2,}$', 'aaaa', true],
    ['^a{1,3}$', 'aaaa', false],
    ['^(ab|cd){2}$', 'abcd', true],
    ['^(a*)*$', 'aaa', true],
    ['^(a*)+b$', 'aaa', false],
    ['(|a)b', 'b', true],
    ['^a+?b', 'aab', true],
    ['^(?:ab)+$', 'abab', true],
    ['[abc]', 'xbx', true],
    ['[^abc]', 'abc', false],
    ['^[a-c-]+$', 'a-c', true],
    ['^[]a]+$', 'a]', true],
    ['^[^]a]+$', 'b]', false],
    ['^[[:digit:][:upper:]_]+$', 'A1_', true],
    ['^[[:digit:]]+$', 'A1', false],
    ['^[\\d\\-]+$', '1-2', true],
    ['^[\\]]$', ']', true],
    ['^\\d\\D\\w\\W\\s\\S$', '1aa- x', true],
    ['^a\\.b$', 'axb', false],
    ['^a\\.b$', 'a.b', true],
    ['\\(\\)\\{\\}\\|\\\\', '(){}|\\', true],
    ['a\\tb', 'a\tb', true],
    ['(?i)eiffel.*', 'The EIFFEL tower', true],
    ['(?i)[a-z]É', 'Xé', true],
    ['eiffel', 'EIFFEL', false],
    ['.*downtown$', 'urn:x:downtown', true],
    ['urn:ngsi-ld:Vehicle:*', 'urn:ngsi-ld:Vehicle:1', true],
    ['^urn:ngsi-ld:Vehicle:52330-B$', 'urn:ngsi-ld:Vehicle:52330-B', true],
    ['\\bword\\b', 'a word.', true],
    ['\\bword', 'sword', false],
    ['(?<name>a)b', 'ab', true],
    ['^a{x}$', 'a{x}', true],
  ])('%j on %j: %j', (pattern, text, expected) => {
    expect(matches(pattern, text)).toBe(expected)
  })

  it.each([
    ['(', 'ngsi-ld.bad-request-data'],
    [')', 'ngsi-ld.bad-request-data'],
    ['[a', 'ngsi-ld.bad-request-data'],
    ['[]', 'ngsi-ld.bad-request-data'],
    ['[b-a]', 'ngsi-ld.bad-request-data'],
    ['[\\d-z]', 'none'],
    ['[a-\\d]', 'ngsi-ld.bad-request-data'],
    ['[[:nope:]]', 'ngsi-ld.bad-request-data'],
    ['*a', 'ngsi-ld.bad-request-data'],
    ['a**', 'ngsi-ld.bad-request-data'],
    ['a{2,1}', 'ngsi-ld.bad-request-data'],
    ['a{12345}', 'ngsi-ld.too-complex'],
    ['a\\', 'ngsi-ld.bad-request-data'],
    ['(a)\\1', 'ngsi-ld.bad-request-data'],
    ['(?=a)', 'ngsi-ld.bad-request-data'],
    ['(?<=a)b', 'ngsi-ld.bad-request-data'],
    ['a{1000}', 'ngsi-ld.too-complex'],
    ['(a{100}){100}', 'ngsi-ld.too-complex'],
    ['(?:ab{250}){400}', 'ngsi-ld.too-complex'],
    ['(?:\\pL\\pL\\pL){1000}', 'ngsi-ld.too-complex'],
    ['((((){1000}){1000}){1000}){1000}', 'ngsi-ld.bad-request-data'],
    ['a'.repeat(513), 'ngsi-ld.too-complex'],
    ['('.repeat(250) + ')'.repeat(250), 'none'],
  ])('%j is rejected with %s', (pattern, code) => {
    expect(codeOf(pattern)).toBe(code)
  })

  it('returns the suffix of every match', () => {
    expect(compilePattern('.*:Sensor:7$').suffix).toBe(':Sensor:7')
    expect(compilePattern('b*a$').suffix).toBe('a')
    expect(compilePattern('^abc$').suffix).toBe('abc')
    expect(compilePattern('ab|c$').suffix).toBe('')
    expect(compilePattern('abc').suffix).toBe('')
    expect(compilePattern('(?i)abc$').suffix).toBe('')
  })

  it('returns the prefix of every match', () => {
    expect(compilePattern('^urn:ngsi-ld:Sensor:.*').prefix).toBe('urn:ngsi-ld:Sensor:')
    expect(compilePattern('^ab*').prefix).toBe('a')
    expect(compilePattern('^abc$').prefix).toBe('abc')
    expect(compilePattern('^ab|c').prefix).toBe('')
    expect(compilePattern('abc').prefix).toBe('')
    expect(compilePattern('(?i)^abc').prefix).toBe('')
  })

  it('returns no prefix or suffix where an escape may consume more than one character', () => {
    for (const source of ['^\\x41b$', '^a\\x{41}$', '^a|b$', '^\\Qa|b\\E7$', '(?m)^a$', '^a(?i)b$']) {
      expect(compilePattern(source)).toMatchObject({ prefix: '', suffix: '' })
    }
  })

  it('takes steps in proportion to its states and the text, however much backtracking would take', () => {
    const text = `${'a'.repeat(10_000)}!`
    for (const pattern of ['(a+)+$', '(a|aa)+$', '(a*)*b', '(.*)*x{3}$', '(.*a){20}$']) {
      let spent = 0
      const budget: PatternBudget = {
        begin: () => {},
        spend(steps) {
          spent += steps
          return true
        },
      }
      expect(compilePattern(pattern, 'q', budget).test(text)).toBe(false)
      expect(spent).toBeGreaterThan(text.length)
      expect(spent).toBeLessThan(limits.patternStatesMax.value * text.length)
    }
  })

  it('does not match a text that would take too many steps, and throws in a query', () => {
    const text = 'a'.repeat(limits.patternEntitySteps.value / 10)
    expect(matches('(a|aa)+$', text.slice(0, 1000))).toBe(true)
    expect(matches('(a|aa)+$', `${text}a`)).toBe(false)
    expect(() => compilePattern('(a|aa)+$', 'q', createQueryBudget()).test(`${text}a`)).toThrow(
      /too large for a text/,
    )
  })

  it('bounds the texts of one query together', () => {
    const [text, budget] = ['a'.repeat(100_000), createQueryBudget()]
    const pattern = compilePattern('(a|aa)+$', 'q', budget)
    const most = limits.patternQuerySteps.value / limits.patternEntitySteps.value
    expect(() => {
      for (let i = 0; i < 2 * most; i++) {
        budget.begin()
        pattern.test(text)
      }
    }).toThrow(/too much/)
  })

  it('matches literals in texts of any length', () => {
    expect(matches('a\\.b', `${'a'.repeat(2_000_000)}a.b`)).toBe(true)
  })
})
