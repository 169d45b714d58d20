/**
 * Routes for operators: ONNX models. An upload is a tar archive of a model's folder; it takes effect after
 * all checks, without a restart. These routes are not part of NGSI-LD.
 */
import { limits } from '#base/limits/limits.ts'
import { type Bodies, type HttpContext, headerOf } from '#http/request/body.ts'
import { bodyType } from '#http/request/negotiate.ts'
import type { Answers } from '#http/request/response.ts'
import { modelFiles } from '#inference/folders/folder-scan.ts'
import { readTar } from '#inference/folders/tar-archive.ts'
import type { Models } from '#inference/models.ts'

export const modelsPath = '/selvedge/v1/models'

export interface ModelRoutePorts {
  readonly answers: Answers
  readonly bodies: Pick<Bodies, 'raw'>
  readonly models: Pick<Models, 'list' | 'status' | 'add' | 'remove' | 'measure'>
}

const noStore = { 'Cache-Control': 'no-store' }

export function createModelTable({ answers, bodies, models }: ModelRoutePorts) {
  const nameOf = (c: HttpContext): string => c.req.param('name') ?? ''
  return {
    [modelsPath]: {
      GET: () => {
        const { pid, resident, unexpectedEnds, lastEnd } = models.status()
        const process = { running: pid !== undefined, pid, residentBytes: resident, unexpectedEnds, lastEnd }
        return answers.json({ process, models: models.list() }, 200, noStore)
      },
      async POST(c: HttpContext) {
        bodyType(headerOf(c, 'content-type'), ['application/x-tar'])
        const archive = await bodies.raw(c, limits.modelUploadBytes.value)
        const { name, version, kind } = await models.add(readTar(archive, modelFiles))
        const headers = { ...noStore, Location: `${modelsPath}/${name}` }
        return answers.json({ name, version, kind }, 201, headers)
      },
    },
    [`${modelsPath}/:name`]: {
      async DELETE(c: HttpContext) {
        await models.remove(nameOf(c))
        return new Response(null, { status: 204 })
      },
    },
    [`${modelsPath}/:name/measure`]: {
      async POST(c: HttpContext) {
        const times = await models.measure(nameOf(c))
        return answers.json({ ...times }, 200, noStore)
      },
    },
  }
}
