/**
 * A real Chromium, headless and without the Internet: whatever it asks of another host than the gateway's is noted and fails.
 */
import { chromium, type Page } from 'playwright-core'

export interface Browser {
  readonly page: Page
  /** Addresses beyond the gateway's that the page asked for. */
  readonly strangers: readonly string[]
  /** What the page complained about. */
  readonly complaints: readonly string[]
  close(): Promise<void>
}

/** @param path of the program @param origin the only one that is reached */
export async function openBrowser(path: string, origin: string): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: path,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--disable-background-networking',
      '--disable-dev-shm-usage',
    ],
  })
  const strangers: string[] = []
  const complaints: string[] = []
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 } })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  await page.route('**/*', (route) => {
    const url = route.request().url()
    if (url.startsWith(origin) || /^(data|blob):/.test(url)) return route.continue()
    strangers.push(url)
    return route.abort()
  })
  return { page, strangers, complaints, close: () => browser.close() }
}
