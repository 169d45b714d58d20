/** The worker thread that chooses the approaches of streams, and fits their seasonal ARIMA. */
import { workInThread } from '#base/process/working-thread.ts'
import { chooseApproach } from './approach.ts'

workInThread(chooseApproach)
