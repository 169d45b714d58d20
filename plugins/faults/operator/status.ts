/** The status of the component and of single sensors, as the routes report them. */
import { version } from '#base/register/version.ts'
import type { FaultStream } from '#plugins/faults/streams/fault-stream.ts'
import type { WatchedStreams } from '#plugins/faults/streams/watched-streams.ts'
import type { Training, Watching } from '#plugins/faults/streams/watching.ts'

export function createStatus({ streams, watching }: { streams: WatchedStreams; watching: Watching }) {
  const nameOf = ({ sensorId, id }: FaultStream): string => sensorId ?? id
  const trainingRow = ({ stream, progress, error }: Training) => ({
    sensorID: nameOf(stream),
    progress,
    error: error ?? null,
  })

  return Object.freeze({
    status: () => ({
      running: true,
      version,
      streams: streams.size(),
      stopped: [...streams.all().filter(({ record }) => record.isStopped)].map(nameOf),
      training: watching.training().map(trainingRow),
    }),
    /** A sensor of several streams has the state of the first, and a list of all. */
    statusOf(sensorID: string, given: readonly FaultStream[]) {
      const rows = given.map((stream) => {
        const training = watching.trainingOf(stream)
        const { method = null, periodMs = stream.metadata.periodMs } = stream.detector?.approach() ?? {}
        return {
          stream: stream.id,
          state: stream.record.isStopped ? 'stopped' : (stream.record.state ?? 'normal'),
          method,
          period: periodMs === undefined ? null : periodMs / 1000,
          training: training === undefined ? null : trainingRow(training),
        }
      })
      const [first] = rows
      const { state, method, period, training } = first!
      return { sensorID, state, method, period, training, ...(rows.length > 1 && { streams: rows }) }
    },
  })
}
