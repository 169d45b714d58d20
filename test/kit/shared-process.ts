/** Goes before each test file, since others follow in the same process: ceilings that it lowers are what they were for them. */
import { afterAll } from 'vitest'
import { restoreLimits } from './ceilings.ts'

afterAll(restoreLimits)
