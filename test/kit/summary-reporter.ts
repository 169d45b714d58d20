/**
 * The end of a test run, for people and machines: tests not run because a peer is missing, then, as the very
 * last line, `N passed, N failed, N skipped`. A file that could not be loaded and an error outside every test
 * count as failed, so that the line is never better than the exit code.
 */
import { writeSync } from 'node:fs'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

export function summaryReporter(): Reporter {
  let text = '0 passed, 0 failed, 0 skipped\n'
  return {
    onInit() {
      process.once('exit', () => writeSync(1, text))
    },
    onTestRunEnd(modules, unhandledErrors) {
      text = summary(modules, unhandledErrors.length)
    },
  }
}

function summary(modules: readonly TestModule[], errorCount: number): string {
  const counts = { passed: 0, failed: errorCount, skipped: 0 }
  const notRun = new Map<string, number>()
  for (const module of modules) {
    const failedBefore = counts.failed
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      counts[state === 'pending' ? 'skipped' : state]++
      const missing = missingPeerOf(test)
      if (missing !== undefined) notRun.set(missing, (notRun.get(missing) ?? 0) + 1)
    }
    if (module.state() === 'failed' && counts.failed === failedBefore) counts.failed++
  }
  const missing = [...notRun].map(([name, count]) => `${count} tests not run: ${name} is missing\n`)
  return `${missing.join('')}${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`
}

function missingPeerOf(test: TestCase): string | undefined {
  for (let node = test.parent; node.type === 'suite'; node = node.parent) {
    const { missingPeer } = node.meta()
    if (missingPeer !== undefined) return missingPeer
  }
  return undefined
}
