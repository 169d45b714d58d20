/**
 * The real broker on the real write path as a process of its own, for tests that kill it: `mqtt-broker.ts FILE [PORT]`
 * prints one line with its port when it listens. Frames below `claimed/` become rows, as in `mqtt.ts` beside it.
 */
import { openBroker } from './mqtt.ts'

const [file, port] = process.argv.slice(2)
const broker = await openBroker(file!, { port: Number(port ?? 0), lingerMs: 1, willGraceMs: 400 })
process.stdout.write(`${JSON.stringify({ port: broker.port })}\n`)
process.on('SIGTERM', () => void broker.close().then(() => process.exit(0)))
