/**
 * `npm run slow-readers -- [--clients 1000]`: clients request large answers from a real gateway and read none of them. Prints
 * how much memory the gateway took and how an ordinary client was answered meanwhile. Ends with 1 beyond 200 MB.
 */
import { runSlowReaders } from '#test/stall/slow-readers.ts'
import { optionsOf, wholeNumber } from './options.ts'

const help = `Usage: npm run slow-readers -- [options]

  --clients N   how many clients request large answers and read none of them (default 1000)

Exit code: 0 the gateway stayed within 200 MB; 1 it did not; 64 wrong usage.
`
const values = optionsOf('slow-readers', help, { clients: { type: 'string', default: '1000' } })
const residentMbMax = 200

const { startBytes, peakBytes, disconnected, refused, answered, ordinary } = await runSlowReaders({
  clients: wholeNumber('slow-readers', 'clients', values.clients, 1),
})
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`
process.stdout.write(`resident memory   ${megabytes(startBytes)} at the start, ${megabytes(peakBytes)} at most
slow clients      ${disconnected} disconnected; ${answered} requests answered, ${refused} refused
ordinary client   ${ordinary.answers} answers, median ${ordinary.medianMs.toFixed(0)} ms, longest ${ordinary.longestMs.toFixed(0)} ms; ${ordinary.failures} failures
`)
if (peakBytes > residentMbMax * 1e6) {
  process.stdout.write(`beyond ${residentMbMax} MB\n`)
  process.exitCode = 1
}
