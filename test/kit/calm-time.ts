/**
 * Times that a busy machine does not make longer, for tests that something ends soon. Waiting is counted in ticks of a timer of
 * this process, which come later where others take the processors; work is counted in CPU time of this thread.
 */
const tickMs = 20

/** Begins to count; called in the end, it returns the ms that a quiet machine would have taken, at most. */
export function calmTime(): () => number {
  let ticks = 0
  const timer = setInterval(() => ticks++, tickMs)
  return () => {
    clearInterval(timer)
    return ticks * tickMs
  }
}

/** Begins to count; each call returns the ms of CPU time of this thread since then. */
export function workTime(): () => number {
  const from = process.threadCpuUsage()
  return () => {
    const { user, system } = process.threadCpuUsage(from)
    return (user + system) / 1000
  }
}
