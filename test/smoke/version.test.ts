/** The running version is visible in all interfaces. */
import { connectAsync } from 'mqtt'
import { expect, test } from 'vitest'
import { productToken, version } from '#base/register/version.ts'
import { runSelvedge, startGatewayProcess } from '#test/kit/process.ts'
import { createReceiver } from '#test/kit/receiver.ts'

test('the version is on the command line, in HTTP, MQTT, notifications, metrics, the log and the data folder', async () => {
  const receiver = await createReceiver()
  const gateway = await startGatewayProcess()
  const { httpUrl, dataFolder } = gateway
  expect((await runSelvedge(['--version'])).stdout).toBe(`selvedge ${version}\n`)
  for (const path of ['/selvedge/v1/info', '/health/live', '/nowhere', '/ngsi-ld/v1/entities?type=T']) {
    expect((await fetch(httpUrl + path)).headers.get('server')).toBe(productToken)
  }
  expect(await (await fetch(`${httpUrl}/selvedge/v1/info`)).json()).toMatchObject({ version })
  expect(await (await fetch(`${httpUrl}/metrics`)).text()).toContain(
    `selvedge_build_info{version="${version}"} 1`,
  )
  expect(gateway.logLines()[0]).toMatchObject({ event: 'gateway.starting', version })

  const client = await connectAsync(`mqtt://127.0.0.1:${gateway.mqttPort}`)
  const received = new Promise((resolve) =>
    client.once('message', (_, payload) => resolve(payload.toString())),
  )
  await client.subscribeAsync('$SYS/broker/version')
  expect(await received).toBe(productToken)
  await client.endAsync()

  const post = (path: string, body: object) =>
    fetch(`${httpUrl}/ngsi-ld/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const endpoint = { uri: receiver.url(), accept: 'application/json' }
  await post('subscriptions', {
    type: 'Subscription',
    entities: [{ type: 'Room' }],
    notification: { endpoint },
  })
  await post('entities', { id: 'urn:ngsi-ld:Room:1', type: 'Room', lit: { type: 'Property', value: 1 } })
  await expect.poll(() => receiver.received[0]?.headers['user-agent']).toBe(productToken)

  await gateway.kill('SIGTERM')
  const { stdout } = await runSelvedge(['status', '--data', dataFolder, '--http-port', '1'])
  expect(stdout).toMatch(new RegExp(`Last version +${productToken}\\n`))
  await gateway.stop()
  await receiver.down()
})
