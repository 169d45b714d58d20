/**
 * From the fault to the virtual sensor and back, over real MQTT: a sensor that sticks is replaced, the gateway
 * is killed, the sensor heals, and the replacement is withdrawn.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connectAsync } from 'mqtt'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createFaultSite, patience, sensorId } from './stuck-site.ts'

const names = ['north', 'east', 'south', 'west']
const fields = { temperature: { label: 'temperature', updateInterval: 10 } }
const devices = Object.fromEntries(
  names.map((name, i) => [name, { location: [10 + i / 1000, 56], fields }] as const),
)
const site = createFaultSite({ SELVEDGE_VIRTUAL_SENSORS_ENABLED: 'true' }, { provisioning: { devices } })
beforeAll(site.start)
afterAll(site.end)

const past = 200

/** A course that all share, with a little of each device. */
const valueAt = (device: number, n: number): number =>
  Number((15 + 4 * Math.sin(n / 11) + 2 * Math.sin(n / 3.7) + 0.2 * Math.sin(n * (device + 2))).toFixed(2))

/** Sends a sample of each device again and again, of its present time, until the work has settled. */
async function whileSending<T>(from: number, isStuck: boolean, work: () => Promise<T>): Promise<T> {
  const mqtt = await connectAsync(`mqtt://127.0.0.1:${site.gateway().mqttPort}`, { reconnectPeriod: 0 })
  let isOver = false
  const sending = (async () => {
    for (let n = from; !isOver; n++) {
      for (const [i, name] of names.entries()) {
        const v = i === 0 && isStuck ? 15.5 : valueAt(i, n)
        const pack = [{ bn: `${name}:`, bt: Date.now() / 1000, n: 'temperature', u: 'Cel', v }]
        await mqtt.publishAsync(`senml/${name}`, JSON.stringify(pack), { qos: 1 })
      }
      await pause(50)
    }
  })()
  try {
    return await work()
  } finally {
    isOver = true
    await sending
    await mqtt.endAsync()
  }
}

const virtual = `${sensorId('north')}:VS`
const virtualStatus = async () => (await site.client().get(`/ngsi-ld/v1/entities/${virtual}`)).status

describe('a broken sensor among its neighbours', () => {
  it('is replaced by a virtual sensor', async () => {
    const begin = Date.now() - past * 10_000
    for (const [i, name] of names.entries())
      await site.publish(
        name,
        Array.from({ length: past }, (_, n) => [begin + n * 10_000, valueAt(i, n)] as const),
      )
    await vi.waitFor(async () => expect(await site.state('north')).toBe('normal'), patience)
    await whileSending(past, true, async () => {
      await vi.waitFor(async () => expect(await site.state('north')).toBe('fault'), patience)
      await vi.waitFor(async () => expect(await virtualStatus()).toBe(200), patience)
      await vi.waitFor(async () => {
        const observation = await site.entity(virtual.replace('Sensor', 'StreamObservation'))
        expect(observation['http://www.w3.org/ns/sosa/hasSimpleResult']?.value).toBeTypeOf('number')
      }, patience)
    })
  })

  it('is on its own again when it has healed, also after a kill', async () => {
    await site.killAndStart()
    expect(await virtualStatus()).toBe(200)
    await whileSending(1000, false, async () => {
      await vi.waitFor(async () => expect(await site.state('north')).toBe('normal'), patience)
      await vi.waitFor(async () => expect(await virtualStatus()).toBe(404), patience)
    })
    expect((await site.entity(sensorId('north'))).id).toBe(sensorId('north'))
    const faults = await site.faults('north')
    // Its neighbours show a bias too.
    expect(faults.map((one) => one['urn:selvedge:ns:class']!.value)).toContain('stuck')
  })

  it('is not replaced any longer when its detection is stopped', async () => {
    await whileSending(2000, true, async () => {
      await vi.waitFor(async () => expect(await virtualStatus()).toBe(200), patience)
      const stop = `/faults/api/stopFaultDetection?sensorID=${sensorId('north')}`
      expect((await site.client().get(stop)).status).toBe(200)
      await vi.waitFor(async () => expect(await virtualStatus()).toBe(404), patience)
    })
    await vi.waitFor(async () => expect(await site.state('north')).toBe('stopped'), patience)
  })
})
