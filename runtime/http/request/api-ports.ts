/** The ports that nearly every group of routes receives: it reads requests and makes responses. */
import type { RequestReader } from './request.ts'
import type { Answers } from './response.ts'

export interface ApiPorts {
  readonly requests: RequestReader
  readonly answers: Answers
}
