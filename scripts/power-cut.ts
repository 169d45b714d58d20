/**
 * `npm run power-cut -- [--kills 20]`: cuts the power of a real machine, again and again. A Debian guest under qemu runs the
 * gateway as deploy/install.sh and its systemd unit set it up, is fed over MQTT QoS 1, and is killed in the middle of
 * writing; before it boots again its disk is put back to the last completed flush. After each boot everything
 * acknowledged has to be there exactly once and every database whole. Ends with 1 when something is not.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDice } from '#test/crash/plan.ts'
import { runPowerCuts } from '#test/power-cut/campaign.ts'
import { optionsOf, wholeNumber, wrongUsage } from './options.ts'

const help = `Usage: npm run power-cut -- [options]

Needs qemu-system-x86, mmdebstrap and root; test/power-cut/guest.sh builds the guest first, once per checkout:
  sh test/power-cut/guest.sh ${join(tmpdir(), 'selvedge-power-cut')}

  --kills N       power cuts (default 20)
  --seed N        of the instants and of what chance spares (default: the time)
  --cache FOLDER  what guest.sh built (default ${join(tmpdir(), 'selvedge-power-cut')})
  --accel WORD    kvm or tcg, which emulates (default: kvm where /dev/kvm is)

Every second cut keeps nothing of what no flush covers; the others keep of it what chance spares, as a disk does.
`
const values = optionsOf('power-cut', help, {
  kills: { type: 'string', default: '20' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  cache: { type: 'string', default: join(tmpdir(), 'selvedge-power-cut') },
  accel: { type: 'string', default: existsSync('/dev/kvm') ? 'kvm' : 'tcg' },
})
const kills = wholeNumber('power-cut', 'kills', values.kills, 1)
const seed = wholeNumber('power-cut', 'seed', values.seed)
const { accel } = values
if (accel !== 'kvm' && accel !== 'tcg') wrongUsage('power-cut', '--accel is kvm or tcg')
if (!existsSync(join(values.cache, 'root.img'))) {
  process.stderr.write(`power-cut: there is no guest in ${values.cache}; see --help\n`)
  process.exit(69)
}
const tell = (line: string): void => void process.stdout.write(`${line}\n`)
tell(`${kills} power cuts, seed ${seed}`)
const folder = mkdtempSync(join(tmpdir(), 'selvedge-power-cut-run-'))
const { complaints, isNoticed, acknowledged, lostWrites } = await runPowerCuts({
  kills,
  dice: createDice(seed),
  cache: values.cache,
  accel,
  folder,
  tell,
}).finally(() => rmSync(folder, { recursive: true, force: true }))
for (const { fault, text } of complaints) tell(`${fault} ${text}`)
tell(
  `${kills} power cuts; ${acknowledged} messages acknowledged; ${lostWrites} writes of the disk lost; ${complaints.length} complaints`,
)
tell(
  isNoticed ? 'a disk that lies about flushes was noticed' : 'a disk that lies about flushes was NOT noticed',
)
process.exitCode = complaints.length === 0 && isNoticed ? 0 : 1
