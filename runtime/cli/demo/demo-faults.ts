/** Faults of sensors as the terminal of the demo shows them, read from the log of the gateway. */
import { isObject, parsedJson } from '#ngsi-ld/values/json.ts'

/**
 * Returns a function that turns a log line of the gateway into the line to show. It returns undefined for
 * faults of the simulated past, and for lines of no definite fault.
 * @param since start of the demo, ms.
 */
export function createFaultLines(since: number): (line: string) => string | undefined {
  const shown = new Set<string>()
  return (line) => {
    if (!/"faults\.|"orchestrator\.stream-/.test(line)) return undefined
    const fact = parsedJson(line)
    if (!isObject(fact)) return undefined
    const text = (name: string): string => {
      const given = fact[name]
      return typeof given === 'string' ? given : ''
    }
    const [fault, sensor, stream, kind] = [text('fault'), text('sensor'), text('stream'), text('class')]
    const notice = noticeLine(fact['event'], { stream, reason: text('reason'), best: text('best') })
    if (notice !== undefined) return notice
    if (fact['event'] === 'faults.began') {
      if (fact['kind'] !== 'definite' || beginOf(fault) < since) return undefined
      shown.add(fault).add(nameOf(stream))
      return `FAULT: ${nameOf(stream)}: ${kind}`
    }
    if (fact['event'] === 'faults.ended')
      return shown.delete(fault) ? `FAULT OVER: ${nameOf(stream)}: ${kind}` : undefined
    if (!shown.has(nameOf(sensor))) return undefined
    if (fact['event'] === 'faults.not-replaced')
      return `NO VIRTUAL SENSOR of ${nameOf(sensor)}: ${text('reason')}`
    if (fact['event'] !== 'faults.replaced') return undefined
    return fact['wish'] === 'wanted'
      ? `VIRTUAL SENSOR replaces ${nameOf(sensor)}`
      : `VIRTUAL SENSOR of ${nameOf(sensor)} is withdrawn`
  }
}

/** A notice that subscribers of a stream got. */
function noticeLine(
  event: unknown,
  { stream, reason, best }: { readonly stream: string; readonly reason: string; readonly best: string },
): string | undefined {
  if (event === 'orchestrator.stream-recovered')
    return `NOTICE to subscribers of ${nameOf(stream)}: works again`
  if (event !== 'orchestrator.stream-failed') return undefined
  const instead = best === '' ? '' : `; best alternative ${nameOf(best)}`
  return `NOTICE to subscribers of ${nameOf(stream)}: ${reason}${instead}`
}

const beginOf = (fault: string): number => Number(fault.slice(fault.lastIndexOf(':') + 1))

const nameOf = (id: string): string =>
  decodeURIComponent(id.replace(/^urn:ngsi-ld:\w+:/, '')).replaceAll(':', ' ')
