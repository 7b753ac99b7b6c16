#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

int clinux_protect_memory(void) {
  // Attack: after a crash, an attacker reads codes, tokens and keys from a core file or a crash report, or from another
  // process of the same user.
  struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return errno;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno;
  // The Swift runtime installs handlers for these signals before main. They print registers and memory, and delay the
  // exit by many seconds. Without them, the kernel ends the process at once.
  static const int fatal[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
  struct sigaction standard = {.sa_handler = SIG_DFL};
  sigemptyset(&standard.sa_mask);
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    if (sigaction(fatal[i], &standard, NULL) != 0) return errno;
  }
  return 0;
}

int clinux_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

ssize_t clinux_access_list(int descriptor, void *bytes, size_t size) {
  ssize_t length = fgetxattr(descriptor, "system.posix_acl_access", bytes, size);
  if (length < 0 && (errno == ENODATA || errno == ENOTSUP)) return 0;
  return length;
}

int clinux_peer(int descriptor, pid_t *pid, uid_t *user) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return -1;
  *pid = peer.pid;
  *user = peer.uid;
  return 0;
}

// Whether the loader has changed read-only segments of an object, as for code that cannot be moved.
static int has_changed_text(const struct dl_phdr_info *object, const ElfW(Phdr) *segment) {
  const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + segment->p_vaddr);
  for (; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL)) return 1;
  }
  return 0;
}

static int unmap_pages(struct dl_phdr_info *object, size_t size, void *page_size) {
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    if (segment->p_type == PT_DYNAMIC && has_changed_text(object, segment)) return 0;
  }
  const uintptr_t page = *(const uintptr_t *)page_size;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
    // Pages of a writable segment differ from their file, also those that are read-only after relocation.
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    uintptr_t start = object->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
    // Whole pages only: the segment's neighbours may be writable.
    start = (start + page - 1) & ~(page - 1);
    end &= ~(page - 1);
    // Without effect on what the kernel itself maps, such as the vDSO.
    if (start < end) (void)madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return 0;
}

void clinux_unmap_program_pages(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  (void)dl_iterate_phdr(unmap_pages, &page);
}
