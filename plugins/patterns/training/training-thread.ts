/** The worker thread of one training: it computes windows and fits the model, which may take minutes. */
import { answerInThread } from '#base/process/thread.ts'
import { runTraining, type TrainingJob } from './training-job.ts'

answerInThread((job: TrainingJob, onProgress) => runTraining(job, (done, total) => onProgress(done / total)))
