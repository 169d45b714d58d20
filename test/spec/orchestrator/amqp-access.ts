/** Tests of TLS and of credentials at a RabbitMQ, behind a server that terminates TLS. */
import { writeFileSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { createServer, type Server } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openAmqpPublisher } from '#delivery/amqp-publisher.ts'
import { consumeExchange } from '#test/kit/amqp-application.ts'
import { setLimit } from '#test/kit/ceilings.ts'
import { certificate, key } from '#test/kit/certificate.ts'
import { type GatewayInside, startGatewayInside } from '#test/kit/gateway-inside.ts'
import { type AmqpSite, patience } from './application-site.ts'

/** @param folder for files of the tests. */
export function accessTests(place: AmqpSite, folder: string): void {
  describe('by TLS and with a password', () => {
    const password = join(folder, 'amqp-password')
    const authority = join(folder, 'authority.pem')
    /** Times of the connections, ms. */
    const connections: number[] = []
    let server: Server
    let url: string
    let gateway: GatewayInside

    beforeAll(async () => {
      setLimit('amqpRetryMs', 400)
      server = createServer({ key, cert: certificate }, (near) => {
        connections.push(performance.now())
        const far = connect(Number(new URL(place.rabbitmq.url).port), '127.0.0.1')
        for (const socket of [near, far]) socket.on('error', () => undefined)
        near.pipe(far).pipe(near)
        far.on('close', () => near.destroy())
        near.on('close', () => far.destroy())
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      url = `amqps://127.0.0.1:${(server.address() as AddressInfo).port}`
      writeFileSync(password, 'wrong-secret\n', { mode: 0o600 })
      writeFileSync(authority, certificate)
      gateway = await startGatewayInside(join(folder, 'access'), {
        PLATFORM_AMQP_HOST: url,
        SELVEDGE_ORCHESTRATOR_AMQP_USERNAME: 'guest',
        SELVEDGE_ORCHESTRATOR_AMQP_PASSWORD_FILE: password,
        SELVEDGE_ORCHESTRATOR_AMQP_CA_FILE: authority,
      })
    })
    afterAll(async () => {
      await gateway?.close()
      server?.close()
    })

    const ready = async () => (await gateway.get('/health/ready')).text

    it('reports a wrong password, pauses between attempts, and connects once the file is corrected', async () => {
      await expect.poll(ready, patience).toContain('ACCESS_REFUSED')
      await expect.poll(() => connections.length, patience).toBeGreaterThan(2)
      const pauses = connections.slice(1).map((at, i) => at - connections[i]!)
      expect(Math.min(...pauses)).toBeGreaterThan(150)
      expect(await ready()).not.toContain('wrong-secret')
      writeFileSync(password, 'guest\n')
      await expect.poll(ready, patience).not.toContain('notifications wait')
      const body = { type: 'Subscription', entities: [{ type: 'Locked' }] }
      const answer = await gateway.ask('POST', '/orchestrator/ngsi-ld/v1/subscriptions', {
        body,
        headers: { 'Content-Type': 'application/json' },
      })
      const application = await consumeExchange(place.rabbitmq.url, answer.text)
      await gateway.send('POST', '/ngsi-ld/v1/entities', {
        id: 'urn:x:locked',
        type: 'Locked',
        level: { type: 'Property', value: 1 },
      })
      await expect.poll(() => application.messages.length, patience).toBe(1)
      await application.close()
    })

    it('does not connect to a server whose certificate is not trusted', async () => {
      const reasons: string[] = []
      const untrusting = await openAmqpPublisher(
        {
          connected: () => expect.unreachable('connected'),
          lost: () => undefined,
          refused: (reason) => reasons.push(reason),
        },
        { url },
      )
      await expect.poll(() => reasons[0], patience).toMatch(/self[- ]signed certificate/)
      await untrusting.close()
    })
  })
}
