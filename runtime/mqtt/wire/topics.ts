/**
 * Topic names and topic filters of MQTT 3.1.1, section 4.7: what is well formed, within our ceilings. Pure.
 */
import { limits } from '#base/limits/limits.ts'

/** Topics that only the server itself publishes to (section 4.7.2). */
export const systemPrefix = '$SYS/'

/** What asks for a share of the messages (MQTT 5, section 4.8.2); clients of 3.1.1 use it with brokers that know it. */
export const sharePrefix = '$share/'

/** Why a client cannot publish to a topic name, or undefined when it can ([MQTT-3.3.2-2], [MQTT-4.7.3-1] to [MQTT-4.7.3-3]). */
export function topicProblem(topic: string): string | undefined {
  const problem = textProblem(topic)
  if (problem !== undefined) return problem
  if (/[+#]/.test(topic)) return 'a topic name has no wildcards'
  return topic.startsWith(systemPrefix) ? `topics below ${systemPrefix} are the server's own` : undefined
}

/** Why a topic filter cannot be subscribed to, or undefined when it can ([MQTT-4.7.1-1] to [MQTT-4.7.1-3]). */
export function filterProblem(filter: string): string | undefined {
  const problem = textProblem(filter)
  if (problem !== undefined) return problem
  const levels = filter.split('/')
  for (const [index, level] of levels.entries()) {
    if (level === '+') continue
    if (level === '#' && index === levels.length - 1) continue
    if (level.includes('+')) return '+ stands for a whole level'
    if (level.includes('#')) return '# stands for all last levels'
  }
  return undefined
}

/** What holds for every text that is a topic. U+FFFD is what ill-formed UTF-8 was decoded to ([MQTT-1.5.3-1]). */
function textProblem(text: string): string | undefined {
  if (text === '') return 'a topic has at least one character'
  if (text.includes('\u0000')) return 'a topic has no U+0000'
  if (text.includes('\uFFFD')) return 'a topic is well-formed UTF-8'
  if (Buffer.byteLength(text) > limits.topicBytesMax.value) {
    return `a topic has at most ${limits.topicBytesMax.value} bytes`
  }
  let levels = 1
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === slash) levels++
  if (levels > limits.topicLevelsMax.value) return `a topic has at most ${limits.topicLevelsMax.value} levels`
  return undefined
}

const slash = 0x2f
