/**
 * The ceilings of uplinks; part of the table in limits.ts.
 */
import { type Limit, limit } from './limit.ts'

export const uplinkLimits = {
  viaHopsMax: limit(16, 'brokers', 'Kept with what came through them', 'the first and the last ones'),
  uplinkRowsPerTurn: limit(64, 'log rows', 'What is sent before the position moves on', 'the next turn'),
  uplinkEntitiesPerRequest: limit(200, 'entities', 'What any broker takes in one batch', 'the next request'),
  uplinkInstancesPerRequest: limit(2000, 'instances', 'About 250 KB of a history', 'the next request'),
  uplinkInstancesAskedFor: limit(
    400,
    'instances',
    'Twice as many are in the answers of all brokers known',
    'the next question',
  ),
  uplinkAddressBytes: limit(4096, 'bytes', 'Ids in the address of a question', 'the next request'),
  uplinkRequestBytes: limit(512 * 1024, 'bytes', 'Passes slow links within a timeout', 'the next request'),
  uplinkGzipBytesMin: limit(1024, 'bytes', 'Less gains nothing', 'sent as it is'),
  uplinkTimeoutMs: limit(20_000, 'ms', 'A full request over a slow link', 'sent again after a pause'),
  uplinkRequestsInFlight: limit(
    4,
    'requests',
    'Hides the delay of the way while history is filled in',
    'wait',
  ),
  uplinkPollMs: limit(100, 'ms', 'A number in memory is looked at; bounds the live delay', 'the next look'),
  uplinkWindowMinutesMax: limit(10_080, 'minutes', 'A week; who wants more wants no window', 'refused'),
  uplinkRateMs: limit(600_000, 'ms', 'What came in lately tells how long there is room', 'nothing'),
  uplinkMeasureMs: limit(10_000, 'ms', 'Figures for people are that old at most', 'measured anew'),
  uplinkBudgetMs: limit(30_000, 'ms', 'How often what waits is weighed', 'the next look'),
  uplinkBudgetParts: limit(64, 'parts', 'In which a span is thinned or let go', 'longer parts'),
  uplinkBudgetPartMs: limit(1000, 'ms', 'A shorter part gains nothing', 'one part'),
  uplinkShutMs: limit(1000, 'ms', 'How soon a pause or a window is noticed', 'the next look'),
  uplinkSaveMs: limit(
    1000,
    'ms',
    'One row a second at most; what is sent twice is known there',
    'the next save',
  ),
  uplinkBehindMs: limit(
    5000,
    'ms',
    'Beyond, the current values go first',
    'the rest is filled in afterwards',
  ),
  uplinkSliceMs: limit(60_000, 'ms', 'What of a history is filled in at a time, at first', 'the next slice'),
  uplinkSliceMsMax: limit(3_600_000, 'ms', 'Of quiet sites', 'the next slice'),
  uplinkSliceObservations: limit(
    100_000,
    'observations',
    'A slice is made as long as holds so many',
    'shorter',
  ),
  uplinkRefusalsMax: limit(10_000, 'steps', 'What is looked through by people', 'the oldest goes'),
  uplinksLookMs: limit(1000, 'ms', 'How soon a new uplink begins', 'the next look'),
  uplinkFaultMs: limit(5000, 'ms', 'A lane that failed for a fault of ours rests', 'it begins again'),
} as const satisfies Record<string, Limit>
