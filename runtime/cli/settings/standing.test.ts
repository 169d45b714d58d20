/** How a gateway stands with other brokers is told in lines for people, and nothing is told where nothing is known. */
import { describe, expect, it } from 'vitest'
import { standingRows, standingsOf, uplinkStandingsOf } from './standing.ts'

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

  it('tells of uplinks, and of the trouble of one that is cut off', () => {
    const told = [
      { id: 'a', centre: 'http://c', state: 'live', sent: 3 },
      { id: 'b', centre: 'http://d', state: 'offline', trouble: 'connect ECONNREFUSED' },
    ]
    expect(standingRows(uplinkStandingsOf(JSON.stringify(told)))).toEqual([
      ['Uplink', 'a, http://c, live'],
      ['Uplink', 'b, http://d, offline: connect ECONNREFUSED'],
    ])
  })

  it('is nothing where the gateway does not tell', () => {
    expect(standingsOf('')).toEqual({})
    expect(uplinkStandingsOf('{"status": 404}')).toEqual({})
    expect(standingsOf('{"title": "there is nothing", "status": 404}')).toEqual({})
  })
})
