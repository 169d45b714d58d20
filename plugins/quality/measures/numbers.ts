/** Numbers as clients write them. */
/** A finite number, also written as text such as `21.5` or `21.5^^xsd:double`. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string') return undefined
  const [text = ''] = value.split('^^')
  const number = text.trim() === '' ? Number.NaN : Number(text)
  return Number.isFinite(number) ? number : undefined
}
