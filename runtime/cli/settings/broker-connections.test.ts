/**
 * Text lines about the connections of a gateway with other brokers; none if the gateway does not report them.
 */
import { describe, expect, it } from 'vitest'
import { connectionRows, connectionsOf, uplinkConnectionsOf } from './broker-connections.ts'

describe('the connections with other brokers', () => {
  it('are one line each, with the reason of a problem', () => {
    const report = {
      registrations: [{ id: 'urn:r', centre: 'http://c', state: 'refused', reason: 'answered 409' }],
      tunnels: [{ centre: 'http://c', state: 'open', since: 1 }],
      copies: [{ name: 'shared', centre: 'http://c', state: 'notified' }],
      connected: [{ alias: 'selvedge-1', from: '10.0.0.1' }],
    }
    expect(connectionRows(connectionsOf(JSON.stringify(report)))).toEqual([
      ['Registration', 'urn:r, http://c, refused: answered 409'],
      ['Tunnel', 'http://c, open'],
      ['Copies', 'shared, http://c, notified'],
      ['Tunnel from', 'selvedge-1, open'],
    ])
  })

  it('include uplinks, with the reason why one is offline', () => {
    const report = [
      { id: 'a', centre: 'http://c', state: 'live', sent: 3 },
      { id: 'b', centre: 'http://d', state: 'offline', trouble: 'connect ECONNREFUSED' },
    ]
    expect(connectionRows(uplinkConnectionsOf(JSON.stringify(report)))).toEqual([
      ['Uplink', 'a, http://c, live'],
      ['Uplink', 'b, http://d, offline: connect ECONNREFUSED'],
    ])
  })

  it('are empty if the gateway does not report them', () => {
    expect(connectionsOf('')).toEqual({})
    expect(uplinkConnectionsOf('{"status": 404}')).toEqual({})
    expect(connectionsOf('{"title": "there is nothing", "status": 404}')).toEqual({})
  })
})
