/**
 * A disk that fails, for a process of its own: a library put before the system's answers writes and flushes of files whose
 * path holds a word with EIO, while a file of ours is there. The kernel's own way (device-mapper's error target) needs a
 * module that containers seldom have; for the process there is no difference. It takes a C compiler.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface FailingDisk {
  /** For the process that shall have it. */
  readonly env: Readonly<Record<string, string>>
  fail(): void
  heal(): void
  remove(): void
}

/** What keeps this machine from having one; undefined when nothing does. */
export function failingDiskObstacle(): string | undefined {
  return spawnSync('cc', ['--version']).status === 0 ? undefined : 'a C compiler'
}

const source = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int fails(int fd) {
  char link[64], path[4096];
  const char *flag = getenv("FAILING_DISK_FLAG"), *word = getenv("FAILING_DISK_WORD");
  if (!flag || !word || access(flag, F_OK) != 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return strstr(path, word) != NULL;
}
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define REFUSE if (fails(fd)) { errno = EIO; return -1; }
ssize_t write(int fd, const void *b, size_t n) { REFUSE return NEXT(write)(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REFUSE return NEXT(pwrite)(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { REFUSE return NEXT(pwrite64)(fd, b, n, o); }
int fsync(int fd) { REFUSE return NEXT(fsync)(fd); }
int fdatasync(int fd) { REFUSE return NEXT(fdatasync)(fd); }
int ftruncate64(int fd, off64_t n) { REFUSE return NEXT(ftruncate64)(fd, n); }
`

/** Fails for files whose path holds this word. */
export function makeFailingDisk(word: string): FailingDisk {
  const folder = mkdtempSync(join(tmpdir(), 'selvedge-failing-'))
  const library = join(folder, 'failing.so')
  const flag = join(folder, 'fail')
  writeFileSync(join(folder, 'failing.c'), source)
  const made = spawnSync('cc', ['-shared', '-fPIC', '-o', library, join(folder, 'failing.c'), '-ldl'])
  if (made.status !== 0) throw new TypeError(`cc: ${made.stderr.toString()}`)
  return {
    env: { LD_PRELOAD: library, FAILING_DISK_FLAG: flag, FAILING_DISK_WORD: word },
    fail: () => writeFileSync(flag, ''),
    heal: () => rmSync(flag, { force: true }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
