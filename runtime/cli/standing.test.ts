/** How a gateway stands with other brokers is told in lines for people, and nothing is told where nothing is known. */
import { describe, expect, it } from 'vitest'
import { standingRows, standingsOf } from './standing.ts'

describe('how a gateway stands with other brokers', () => {
  it('is one line for each thing, with the reason where something is wrong', () => {
    const told = {
      registrations: [{ id: 'urn:r', centre: 'http://c', state: 'refused', reason: 'answered 409' }],
      tunnels: [{ centre: 'http://c', state: 'open', since: 1 }],
      copies: [{ name: 'shared', centre: 'http://c', state: 'told' }],
      connected: [{ alias: 'selvedge-1', from: '10.0.0.1' }],
    }
    expect(standingRows(standingsOf(JSON.stringify(told)))).toEqual([
      ['Registration', 'urn:r, http://c, refused: answered 409'],
      ['Tunnel', 'http://c, open'],
      ['Copies', 'shared, http://c, told'],
      ['Tunnel from', 'selvedge-1, open'],
    ])
  })

  it('is nothing where the gateway does not tell', () => {
    expect(standingsOf('')).toEqual({})
    expect(standingsOf('{"title": "there is nothing", "status": 404}')).toEqual({})
  })
})
