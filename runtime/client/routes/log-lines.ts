/** The newest log lines of a plugin, in memory for its page; also those below the gateway's log level. */
import { limits } from '#base/limits/limits.ts'
import type { Log, LogEvent, LogLevel } from '#base/register/log.ts'

export interface LogLine {
  /** Increases with each line since the start. */
  readonly n: number
  readonly at: string
  readonly level: LogLevel
  readonly event: LogEvent
  /** Facts as JSON text. */
  readonly facts: string
}

export interface LogLines {
  /** Passes each line on, and keeps it. */
  readonly log: Log
  /** The newest lines of a level or above, newest first. */
  newest(options: { readonly level: LogLevel; readonly limit: number }): readonly LogLine[]
}

export const logLevels = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[]

export function createLogLines(log: Log, now: () => number): LogLines {
  const lines: LogLine[] = []
  let n = 0
  const keep =
    (level: LogLevel) =>
    (event: LogEvent, facts: Record<string, unknown> = {}): void => {
      log[level](event, facts)
      lines.push({ n: ++n, at: new Date(now()).toISOString(), level, event, facts: textOf(facts) })
      if (lines.length > limits.pluginLogLines.value) lines.shift()
    }
  return Object.freeze({
    log: { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') },
    newest({ level, limit }) {
      const least = logLevels.indexOf(level)
      const found = lines.filter((line) => logLevels.indexOf(line.level) >= least)
      return found.slice(-limit).toReversed()
    },
  } satisfies LogLines)
}

const textOf = (facts: Record<string, unknown>): string =>
  JSON.stringify(facts, (_name, fact: unknown) =>
    fact instanceof Error ? fact.message : typeof fact === 'bigint' ? String(fact) : fact,
  ).slice(0, limits.pluginLogLineCharacters.value)
