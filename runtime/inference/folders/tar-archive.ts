/**
 * Reads and writes the files of a small tar archive (ustar). The reader accepts only regular files with
 * expected names, alone or in one folder. Links, devices and other names are errors, so that nothing can be
 * written elsewhere.
 */
import { GatewayError } from '#base/register/errors.ts'

const block = 512

/**
 * The files of an archive by name.
 * @param names expected names.
 * @throws model.invalid
 */
export function readTar(archive: Uint8Array, names: readonly string[]): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>()
  let folder: string | undefined
  for (let at = 0; at + block <= archive.length; ) {
    const header = archive.subarray(at, at + block)
    if (header.every((byte) => byte === 0)) break
    checkSum(header)
    const size = octal(header.subarray(124, 136))
    const content = archive.subarray(at + block, at + block + size)
    if (content.length < size) throw invalid('it ends within a file')
    at += block + Math.ceil(size / block) * block
    const kind = String.fromCharCode(header[156]!)
    // Extended headers of pax; what they could change is not used.
    if (kind === 'x' || kind === 'g') continue
    const path = pathOf(header)
    if (kind === '5') continue
    if (kind !== '0' && kind !== '\0') throw invalid(`${path} is not a regular file`)
    const [, parent = '', name = ''] = /^(?:\.\/)?(?:([^/]+)\/)?([^/]+)$/.exec(path) ?? []
    if (parent === '..' || !names.includes(name))
      throw invalid(`${path} is not expected; the files are ${names.join(', ')}`)
    folder ??= parent
    if (folder !== parent || files.has(name)) throw invalid(`${path}: expected the files of one folder`)
    files.set(name, content)
  }
  for (const name of names) if (!files.has(name)) throw invalid(`${name} is missing`)
  return files
}

/** The bytes of the header without those of the sum itself, which count as blanks. */
function checkSum(header: Uint8Array): void {
  const sum = header.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0)
  if (sum !== octal(header.subarray(148, 156))) throw invalid('it is damaged, or no tar archive')
}

function octal(bytes: Uint8Array): number {
  const text = textOf(bytes).trim()
  if (!/^[0-7]{1,11}$/.test(text)) throw invalid('it is damaged, or no tar archive')
  return Number.parseInt(text, 8)
}

function pathOf(header: Uint8Array): string {
  const isUstar = textOf(header.subarray(257, 262)) === 'ustar'
  const prefix = isUstar ? textOf(header.subarray(345, 500)) : ''
  const name = textOf(header.subarray(0, 100))
  return prefix === '' ? name : `${prefix}/${name}`
}

const textOf = (bytes: Uint8Array): string => {
  const end = bytes.indexOf(0)
  return Buffer.from(end < 0 ? bytes : bytes.subarray(0, end)).toString('utf8')
}

const invalid = (reason: string): GatewayError =>
  new GatewayError('model.invalid', `the tar archive: ${reason}`)

/** An archive of files, to be read by `readTar`. */
export function writeTar(files: ReadonlyMap<string, Uint8Array>): Uint8Array {
  const parts = [...files].flatMap(([name, content]) => {
    const padding = Buffer.alloc((block - (content.length % block)) % block)
    return [headerOf(name, content.length), content, padding]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(block)
  const digits = (value: number, length: number): string => `${value.toString(8).padStart(length, '0')}\0`
  header.write(name, 0)
  header.write(digits(0o644, 7), 100)
  header.write(digits(0, 7), 108)
  header.write(digits(0, 7), 116)
  header.write(digits(size, 11), 124)
  header.write(digits(0, 11), 136)
  header.write(' '.repeat(8), 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
