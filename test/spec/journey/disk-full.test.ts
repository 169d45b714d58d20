/**
 * A full disk, for real: the gateway promises nothing that it cannot keep, says so by every door, lives, and goes on
 * by itself when there is room again. What it acknowledged before is still there.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { limits } from '#base/limits/limits.ts'
import { calmTime } from '#test/kit/calm-time.ts'
import { type HttpClient, httpClient } from '#test/kit/http-gateway.ts'
import { connectRaw, publishPacket, type RawClient } from '#test/kit/mqtt.ts'
import { describeAllowed } from '#test/kit/peers.ts'
import { type GatewayProcess, startGatewayProcess } from '#test/kit/process.ts'
import { openSmallDisk, type SmallDisk, smallDiskObstacle } from '#test/kit/small-disk.ts'
import { observationId, publishAll, reading, result } from './observations.ts'

const name = 'cellar:temperature'
const entity = (number: number) => ({ id: `urn:ngsi-ld:Note:${number}`, type: 'Note' })

describeAllowed(smallDiskObstacle(), 'a gateway whose disk is full', () => {
  let disk: SmallDisk
  let gateway: GatewayProcess
  let client: HttpClient
  const create = (number: number) => client.send('POST', '/ngsi-ld/v1/entities', entity(number))
  const connect = (id: string) => connectRaw(gateway.mqttPort, id)
  const message = (value: number) => ({
    topic: 'senml/x',
    payload: reading(name, value, 1_700_000_000 + value),
  })
  async function values(): Promise<number[]> {
    const path = `/ngsi-ld/v1/temporal/entities/${observationId(name)}`
    const answer = await client.get(`${path}?attrs=${encodeURIComponent(result)}&options=temporalValues`)
    return (answer.json() as Record<string, { values: [number, string][] }>)[result]!.values.map(
      ([value]) => value,
    )
  }

  beforeAll(async () => {
    disk = openSmallDisk(20)
    gateway = await startGatewayProcess({ dataFolder: disk.folder })
    client = httpClient(gateway.httpUrl)
    const device = await connect('before')
    await publishAll(device, [message(0), message(1)])
    device.end()
    expect((await create(0)).status).toBe(201)
    disk.fill()
    // What was still free inside the database file and its log is used up by writing.
    await vi.waitFor(
      async () => {
        const answer = await client.send('PATCH', '/ngsi-ld/v1/entities/urn:ngsi-ld:Note:0/attrs', {
          text: { type: 'Property', value: `${performance.now()} `.repeat(5000) },
        })
        expect(answer.status).toBe(507)
      },
      { interval: 10 },
    )
  })
  afterAll(async () => {
    await gateway.kill()
    await gateway.stop()
    disk.remove()
  })

  it('answers writes by HTTP with 507, and goes on answering reads', async () => {
    const answer = await create(1)
    expect(answer.status).toBe(507)
    expect(answer.json()).toMatchObject({ status: 507, title: expect.any(String) })
    expect((await client.get('/ngsi-ld/v1/entities/urn:ngsi-ld:Note:0')).status).toBe(200)
    expect((await client.get('/ngsi-ld/v1/entities/urn:ngsi-ld:Note:1')).status).toBe(404)
  })

  it('is not ready, and says why', async () => {
    const ready = await client.get('/health/ready')
    expect(ready.status).toBe(503)
    expect(ready.text).toContain('disk')
    expect((await client.get('/health/live')).status).toBe(200)
  })

  it('holds QoS 1 for some seconds, then closes without PUBACK', async () => {
    const device: RawClient = await connect('during')
    const sentAt = performance.now()
    device.send(publishPacket('senml/x', message(2).payload, { qos: 1, messageId: 1 }))
    const passed = calmTime()
    await device.ended
    const heldMs = performance.now() - sentAt
    expect(heldMs).toBeGreaterThan(limits.mqttHoldMs.value * 0.8)
    expect(passed()).toBeLessThan(limits.mqttHoldMs.value + 5000)
    await expect(device.next()).rejects.toThrow('the connection ended instead of a packet')
    expect(await values()).toEqual([0, 1])
  })

  it('takes what it held when there is room again, by itself', async () => {
    const device = await connect('recovering')
    device.send(publishPacket('senml/x', message(3).payload, { qos: 1, messageId: 7 }))
    await new Promise((resolve) => setTimeout(resolve, 1000))
    disk.free()
    expect(await device.next()).toMatchObject({ cmd: 'puback', messageId: 7 })
    device.end()
    expect((await create(2)).status).toBe(201)
    expect((await client.get('/health/ready')).status).toBe(200)
    expect(await values()).toEqual([0, 1, 3])
    expect((await client.get('/ngsi-ld/v1/entities/urn:ngsi-ld:Note:0')).status).toBe(200)
  })
})
