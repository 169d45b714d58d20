/** Reports of campaigns put together, and the table that a person reads. */
import type { Report, Row } from './campaign.ts'

export function merged(reports: readonly Report[]): Report {
  const rows = new Map<string, Row>()
  for (const row of reports.flatMap((report) => report.rows)) {
    const before = rows.get(row.label)
    rows.set(row.label, before === undefined ? row : sum(before, row))
  }
  const total = (pick: (report: Report) => number): number =>
    reports.reduce((value, report) => value + pick(report), 0)
  return {
    rows: [...rows.values()],
    complaints: reports.flatMap((report) => report.complaints),
    unnoticed: reports.flatMap((report) => report.unnoticed),
    kills: total((report) => report.kills),
    acknowledged: total((report) => report.acknowledged),
    judgements: total((report) => report.judgements),
    slowestStartMs: Math.max(...reports.map((report) => report.slowestStartMs)),
  }
}

function sum(a: Row, b: Row): Row {
  const faults = new Map(a.faults)
  for (const [fault, count] of b.faults) faults.set(fault, (faults.get(fault) ?? 0) + count)
  return {
    label: a.label,
    kills: a.kills + b.kills,
    missed: a.missed + b.missed,
    acknowledged: a.acknowledged + b.acknowledged,
    faults,
  }
}

const columns = ['kills', 'acknowledged', 'lost', 'duplicated', 'other', 'missed'] as const

/** One line per kind of kill. */
export function table({ rows }: Report): string {
  const lines = rows
    .toSorted((a, b) => a.label.localeCompare(b.label))
    .map((row) => {
      const of = (fault: 'lost' | 'duplicated'): number => row.faults.get(fault) ?? 0
      const all = [...row.faults.values()].reduce((count, one) => count + one, 0)
      const [lost, duplicated] = [of('lost'), of('duplicated')]
      return [row.label, row.kills, row.acknowledged, lost, duplicated, all - lost - duplicated, row.missed]
    })
  const totals = columns.map((_, i) => lines.reduce((count, line) => count + Number(line[i + 1]), 0))
  const all = [['killed at', ...columns], ...lines, ['all', ...totals]]
  return all
    .map(
      ([label, ...cells]) =>
        String(label).padEnd(26) + cells.map((cell) => String(cell).padStart(13)).join(''),
    )
    .join('\n')
}
