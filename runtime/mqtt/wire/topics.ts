/**
 * Validates topic names and topic filters of MQTT 3.1.1, section 4.7, and our limits. Pure.
 */
import { limits } from '#base/limits/limits.ts'

/** Topics that only the server itself publishes to (section 4.7.2). */
export const systemPrefix = '$SYS/'

/**
 * Prefix of shared subscriptions (MQTT 5, section 4.8.2). Clients of 3.1.1 also use it with brokers that
 * support it.
 */
export const sharePrefix = '$share/'

/**
 * Returns why a client cannot publish to a topic name; undefined when it can ([MQTT-3.3.2-2], [MQTT-4.7.3-1]
 * to [MQTT-4.7.3-3]).
 */
export function topicProblem(topic: string): string | undefined {
  const problem = textProblem(topic)
  if (problem !== undefined) return problem
  if (/[+#]/.test(topic)) return 'a topic name must not have wildcards'
  return topic.startsWith(systemPrefix)
    ? `topics below ${systemPrefix} are reserved for the server`
    : undefined
}

/**
 * Returns why a topic filter cannot be subscribed to; undefined when it can ([MQTT-4.7.1-1] to
 * [MQTT-4.7.1-3]).
 */
export function filterProblem(filter: string): string | undefined {
  const problem = textProblem(filter)
  if (problem !== undefined) return problem
  const levels = filter.split('/')
  for (const [index, level] of levels.entries()) {
    if (level === '+') continue
    if (level === '#' && index === levels.length - 1) continue
    if (level.includes('+')) return '+ must occupy a whole level'
    if (level.includes('#')) return '# must be the last level'
  }
  return undefined
}

/**
 * Rules for topic names and filters alike. U+FFFD is the replacement for ill-formed UTF-8 ([MQTT-1.5.3-1]).
 */
function textProblem(text: string): string | undefined {
  if (text === '') return 'a topic must have at least one character'
  if (text.includes('\u0000')) return 'a topic must not contain U+0000'
  if (text.includes('\uFFFD')) return 'a topic must be well-formed UTF-8'
  if (Buffer.byteLength(text) > limits.topicBytesMax.value) {
    return `a topic must have at most ${limits.topicBytesMax.value} bytes`
  }
  let levels = 1
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === slash) levels++
  if (levels > limits.topicLevelsMax.value)
    return `a topic must have at most ${limits.topicLevelsMax.value} levels`
  return undefined
}

const slash = 0x2f
