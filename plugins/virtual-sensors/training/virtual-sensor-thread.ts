/** The worker thread of one training. */
import { answerInThread } from '#base/process/thread.ts'
import type { TrainingInput } from '#plugins/virtual-sensors/families/virtual-sensor-model.ts'
import { trainVirtualSensor } from '#plugins/virtual-sensors/families/virtual-sensor-training.ts'

answerInThread((input: TrainingInput, onProgress) => trainVirtualSensor(input, onProgress))
