/** scratch */
import { startHttpGateway } from '#test/kit/http-gateway.ts'
const gw = await startHttpGateway()
await gw.send('POST', '/ngsi-ld/v1/entities/', { id: 'urn:ngsi-ld:Sensor:1', type: 'Sensor', a: {type:'Property', value: 'x'.repeat(900)} })
console.log(gw.port)
process.on('SIGINT', () => process.exit(0))
