/**
 * Runs in the guest after each boot: waits until the gateway is ready, asks SQLite whether every database of the data folder
 * is whole, and says both on the console, where the host reads it.
 */
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { release } from 'node:os'

/** @type {(name: string) => typeof import('better-sqlite3')} */
const require = createRequire('/opt/selvedge/dist/main.js')
const Database = require('better-sqlite3')
const folder = '/var/lib/selvedge'

async function isReady() {
  try {
    return (await fetch('http://127.0.0.1:9090/health/ready')).status === 200
  } catch {
    return false
  }
}
while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 300))

for (const name of readdirSync(folder, { recursive: true })) {
  if (!String(name).endsWith('.db')) continue
  const database = new Database(`${folder}/${name}`, { readonly: true })
  const verdict = database.pragma('integrity_check', { simple: true })
  database.close()
  console.log(`power-cut: integrity of ${name}: ${verdict}`)
}
console.log(`power-cut: ready on Linux ${release()}, Node ${process.version}`)
