/** The text of settings on the page: secrets are hidden wherever they stand. */
import { describe, expect, it } from 'vitest'
import { settingText } from './configuration.ts'

describe('the text of a setting', () => {
  it.each([
    ['port', 8081, '8081'],
    ['host', undefined, ''],
    ['broker', 'http://user:secret@broker:9090', 'http://(hidden)@broker:9090'],
    ['password', 'abc', '(hidden)'],
    ['tokenFile', '/etc/token', '/etc/token'],
    ['hosts', [{ url: 'mqtt://a', password: 'b' }], '[{"url":"mqtt://a","password":"(hidden)"}]'],
    ['identity', { url: 'http://a', token: { of: 'b' } }, '{"url":"http://a","token":"(hidden)"}'],
  ])('of %s', (name, value, text) => {
    expect(settingText(name, value)).toBe(text)
  })
})
