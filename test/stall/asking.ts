/** How the cases of the stall campaign ask a gateway, in few words. */
import type { Site } from './campaign.ts'

export const ld = '/ngsi-ld/v1'
export const property = (value: unknown) => ({ type: 'Property', value })

export const send = async ({ http }: Site, method: string, path: string, body: unknown): Promise<string> => {
  const { status, text } = await http.send(method, ld + path, body)
  return `${status} ${/"detail":"([^"]*)/.exec(text)?.[1] ?? `${text.length} characters`}`
}
export const get = async ({ http }: Site, path: string): Promise<string> => {
  const { status, text } = await http.get(ld + path)
  return `${status} ${/"detail":"([^"]*)/.exec(text)?.[1] ?? `${text.length} characters`}`
}
export const range = <T>(length: number, make: (i: number) => T): T[] =>
  Array.from({ length }, (_, i) => make(i))

export const q = (text: string): string => `q=${encodeURIComponent(text)}`
