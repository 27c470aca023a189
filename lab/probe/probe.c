// probe: says which object serves malloc in this very process, and whether libc's own heap stayed empty.
//   How      Preloaded after the allocator. One JSON line at start (which object provides each symbol) and one at exit
//            (mallinfo2 of libc's own heap, CPU time), each a single write(2) to the file named by LOAM_PROBE (report.h).
//   Promise  Allocates nothing and calls nothing that allocates: a megabyte of probe blocks would change the placement
//            under study. Hence no dlsym (a failed look-up allocates its message) and no stdio: symbols are looked up
//            here, in the tables of the mapped objects, in the order in which the dynamic linker searches them.
//   Unlike   dlsym + dladdr this also sees through canonical PLT entries: a program not built position-independent that
//            takes the address of malloc makes &malloc an address inside the program, although calls go elsewhere.
//   Ends     exit, quick_exit, and _exit where a program calls it by name, as workers of stress-ng and of Python's
//            multiprocessing do.
//   Not seen A process that ends by a signal or its own system call writes no exit record: unproven.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "line.h"
#include "objects.h"
#include "report.h"

// The order is not significant; lab/loam_lab/subjects/allocators/probe.py decides which of them matter.
// clang-format off: one row per family reads better than one name per line
static const char* const kSymbols[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_usable_size",
    "valloc",
    "pvalloc",
    "reallocarray",
    "malloc_trim",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_stats",
    "malloc_info",
    // operator new, new[]: plain, nothrow, aligned, aligned nothrow
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    // operator delete, delete[]: plain, sized, nothrow, aligned, sized aligned, aligned nothrow
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};
// clang-format on
enum { kSymbolCount = sizeof kSymbols / sizeof kSymbols[0], kObjectsMax = 16, kBuildIdMax = 32 };

static pid_t start_pid;   // process in which the constructor ran; differs from getpid() in a forked child
static bool libc_serves;  // libc's own heap is behind malloc: there is nothing to prove
static pid_t ended_pid;   // process whose exit record is written; a child of vfork shares it with its parent

static void probe_exit(void);

static void begin_line(const char* kind) {
  text_used = 0;
  text_full = false;
  put("{");
  put_key("kind");
  put_string(kind);
  put_key_number("schema", 1);
  put_key_number("pid", getpid());
  put_key_number("ppid", getppid());
  put_key_number("start_pid", start_pid);
  put_key_number("uid", geteuid());
}

static void write_line(void) {
  put("}\n");
  if (!text_full) write_report(text, text_used);
}

static void put_build_id(const struct object* object) {
  for (size_t i = 0; i < object->header_count; ++i) {
    if (object->headers[i].p_type != PT_NOTE) continue;
    const unsigned char* at = (const unsigned char*)(object->base + object->headers[i].p_vaddr);
    const unsigned char* end = at + object->headers[i].p_memsz;
    while (end - at >= 12) {
      const uint32_t* words = (const uint32_t*)at;
      const unsigned char* value = at + 12 + (words[0] + 3) / 4 * 4;
      if (words[2] == NT_GNU_BUILD_ID && words[0] == 4 && memcmp(at + 12, "GNU", 4) == 0 && words[1] <= kBuildIdMax) {
        put_key("build_id");
        put("\"");
        put_hex(value, words[1]);
        put("\"");
        return;
      }
      at = value + (words[1] + 3) / 4 * 4;
    }
  }
}

static void put_program_path(void) {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  put_string(path);
}

// ---- start: who provides each symbol ----

struct providers {
  struct object objects[kObjectsMax];
  int count;
  int of_symbol[kSymbolCount];  // index into objects, -1 where no object defines it
};
static struct providers providers;

// dl_iterate_phdr visits the program, the preloaded objects, then their dependencies breadth first: at start that is
// the scope in which every undefined symbol is looked up, so the first object that defines a name is its provider.
static int note_providers(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  struct object object;
  if (!describe(info, &object)) return 0;
  int own = -1;
  for (int i = 0; i < kSymbolCount; ++i) {
    if (providers.of_symbol[i] >= 0 || find(&object, kSymbols[i]) == NULL) continue;
    if (own < 0) {
      if (providers.count == kObjectsMax) return 0;
      own = providers.count++;
      providers.objects[own] = object;
    }
    providers.of_symbol[i] = own;
  }
  return 0;
}

static void put_providers(void) {
  put_key("objects");
  put("[");
  for (int i = 0; i < providers.count; ++i) {
    put(i > 0 ? ",{" : "{");
    put_key("path");
    if (providers.objects[i].name[0] == '\0')
      put_program_path();
    else
      put_string(providers.objects[i].name);
    if (providers.objects[i].soname != NULL) {
      put_key("soname");
      put_string(providers.objects[i].soname);
    }
    put_build_id(&providers.objects[i]);
    put("}");
  }
  put("]");
  put_key("symbols");
  put("{");
  for (int i = 0; i < kSymbolCount; ++i) {
    put_key(kSymbols[i]);
    if (providers.of_symbol[i] < 0)
      put("null");
    else
      put_number(providers.of_symbol[i]);
  }
  put("}");
}

static const char* environment(char** variables, const char* name, size_t length) {
  for (; *variables != NULL; ++variables)
    if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=') return *variables + length + 1;
  return NULL;
}

// LOAM_PROBE_VARIABLES: names joined by commas; their values in this process show that the settings arrived.
static void put_variables(char** variables) {
  const char* names = environment(variables, "LOAM_PROBE_VARIABLES", strlen("LOAM_PROBE_VARIABLES"));
  put_key("variables");
  put("{");
  while (names != NULL && *names != '\0') {
    const size_t length = strcspn(names, ",");
    const char* value = environment(variables, names, length);
    if (length > 0 && value != NULL) {
      put(text[text_used - 1] == '{' ? "\"" : ",\"");
      put_raw(names, length);
      put("\":");
      put_string(value);
    }
    names += length + (names[length] == ',');
  }
  put("}");
}

// Peak resident memory of this program. Not getrusage's: Linux carries a process's peak over from before exec, so a
// program started by the lab would never show less than the lab itself. 0 where /proc does not say.
static long long rss_peak_kib(void) {
  char status[4096];
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return 0;
  const ssize_t length = read(file, status, sizeof status - 1);
  close(file);
  status[length > 0 ? length : 0] = '\0';
  const char* at = strstr(status, "\nVmHWM:");
  if (at == NULL) return 0;
  long long kib = 0;
  for (at += strlen("\nVmHWM:"); *at == ' ' || *at == '\t'; ++at) {
  }
  for (; *at >= '0' && *at <= '9'; ++at) kib = kib * 10 + (*at - '0');
  return kib;
}

static void put_cpu(void) {
  struct rusage self = {0}, children = {0};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  put_key_number("cpu_us", (self.ru_utime.tv_sec + self.ru_stime.tv_sec) * 1000000LL + self.ru_utime.tv_usec +
                               self.ru_stime.tv_usec);
  put_key_number("children_cpu_us", (children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000LL +
                                        children.ru_utime.tv_usec + children.ru_stime.tv_usec);
  put_key_number("rss_peak_kib", rss_peak_kib());
}

__attribute__((constructor)) static void probe_start(int argc, char** argv, char** variables) {
  (void)argc, (void)argv;
  const int saved = errno;
  const char* file = environment(variables, "LOAM_PROBE", strlen("LOAM_PROBE"));
  if (file == NULL || file[0] == '\0' || strlen(file) >= sizeof report_name) return;
  begin_report(file);
  start_pid = getpid();
  memset(providers.of_symbol, -1, sizeof providers.of_symbol);
  dl_iterate_phdr(note_providers, NULL);
  const char* const owner = providers.of_symbol[0] < 0 ? NULL : providers.objects[providers.of_symbol[0]].soname;
  const char* const forwards = environment(variables, "LOAM_PROBE_FORWARDS", strlen("LOAM_PROBE_FORWARDS"));
  libc_serves = (owner != NULL && strcmp(owner, "libc.so.6") == 0) || (forwards != NULL && forwards[0] == '1');
  begin_line("start");
  put_key("exe");
  put_program_path();
  put_cpu();
  put_variables(variables);
  put_providers();
  write_line();
  at_quick_exit(probe_exit);
  errno = saved;
}

// ---- exit: did libc's own heap stay empty? ----

struct at_exit {
  const struct object* libc;
  struct object libc_object;
  bool jvm;
  int definers;  // objects that define malloc now
};

static int note_exit(struct dl_phdr_info* info, size_t size, void* into) {
  (void)size;
  struct at_exit* result = into;
  struct object object;
  if (!describe(info, &object)) return 0;
  if (object.soname != NULL && strcmp(object.soname, "libc.so.6") == 0 && result->libc == NULL) {
    result->libc_object = object;
    result->libc = &result->libc_object;
  }
  if (object.soname != NULL && strcmp(object.soname, "libjvm.so") == 0) result->jvm = true;
  if (find(&object, "malloc") != NULL) {
    put(result->definers++ > 0 ? "," : "");
    if (object.name[0] == '\0')
      put_program_path();
    else
      put_string(object.name);
  }
  return 0;
}

#if __GLIBC_PREREQ(2, 35)
// <link.h> declares the shorter form of version 1; r_next is there only if r_version says so.
extern const struct r_debug_extended linker_state __asm__("_r_debug");
#endif

// Further linker namespaces (dlmopen, auditors) hold a libc of their own, whose heap nobody asks.
static int namespaces(void) {
  int count = 1;
#if __GLIBC_PREREQ(2, 35)
  if (linker_state.base.r_version >= 2)
    for (const struct r_debug_extended* next = linker_state.r_next; next != NULL; next = next->r_next)
      count += next->base.r_map != NULL;
#endif
  return count;
}

__attribute__((destructor)) static void probe_exit(void) {
  // relaxed: one of several threads that end the process at once writes its record, whichever.
  if (report_name[0] == '\0' || __atomic_exchange_n(&ended_pid, getpid(), __ATOMIC_RELAXED) == getpid()) return;
  const int saved = errno;
  begin_line("exit");
  put_cpu();
  put_key("definers");
  put("[");
  struct at_exit seen = {0};
  dl_iterate_phdr(note_exit, &seen);
  put("]");
  put_key("jvm");
  put(seen.jvm ? "true" : "false");
  put_key_number("namespaces", namespaces());
  // Where libc itself serves malloc the numbers would prove nothing, and asking takes the locks of its arenas, which a
  // program that ends in a signal handler may hold.
  if (seen.libc != NULL && !libc_serves) {
    const ElfW(Sym)* symbol = find(seen.libc, "mallinfo2");
    if (symbol != NULL) {
      struct mallinfo2 (*const own_mallinfo2)(void) = (struct mallinfo2 (*)(void))(seen.libc->base + symbol->st_value);
      const struct mallinfo2 heap = own_mallinfo2();
      put_key_number("libc_arena_bytes", (long long)heap.arena);
      put_key_number("libc_mapped_bytes", (long long)heap.hblkhd);
    }
  }
  write_line();
  errno = saved;
}

__attribute__((visibility("default"))) void _exit(int status) {
  probe_exit();
  for (;;) syscall(SYS_exit_group, status);
}
__attribute__((visibility("default"), alias("_exit"))) void _Exit(int status);
