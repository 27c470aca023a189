// Kernel files that describe the host, pages of memory, and calls that would wait outside of the simulation.
#include "simulator/engine/access.hpp"
#include "simulator/engine/fail.hpp"
#include "simulator/engine/real.hpp"
#include "simulator/engine/scheduler.hpp"
#include "simulator/engine/transactions.hpp"
#include "simulator/hooks/exported.hpp"

#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace loam::simulator {
namespace {

// What these tell is true of the host, and differs from run to run: how long threads waited for its processors, how its
// processors lie to each other.
bool tells_of_host(const char* path) {
  const std::string_view name(path);
  return name.starts_with("/sys/devices/system/") || name.ends_with("/schedstat");
}

}  // namespace
}  // namespace loam::simulator

using namespace loam::simulator;

LOAM_EXPORTED int open(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = va_arg(list, mode_t);
  va_end(list);
  if (now.thread != nullptr && tells_of_host(path)) {
    errno = ENOENT;
    return -1;
  }
  return LOAM_REAL(open)(path, flags, mode);
}
LOAM_EXPORTED int open64(const char* path, int flags, ...) {
  std::va_list list;
  va_start(list, flags);
  const auto mode = va_arg(list, mode_t);
  va_end(list);
  return open(path, flags, mode);
}

// An instrumented allocator's way to the kernel, among others.
LOAM_EXPORTED void* mmap(void* start, size_t bytes, int rights, int flags, int file, off_t offset) noexcept {
  leave_transaction();
  return LOAM_REAL(mmap)(start, bytes, rights, flags, file, offset);
}
LOAM_EXPORTED int munmap(void* start, size_t bytes) noexcept {
  leave_transaction();
  return LOAM_REAL(munmap)(start, bytes);
}
LOAM_EXPORTED int madvise(void* start, size_t bytes, int advice) noexcept {
  leave_transaction();
  return LOAM_REAL(madvise)(start, bytes, advice);
}
LOAM_EXPORTED int mprotect(void* start, size_t bytes, int rights) noexcept {
  leave_transaction();
  return LOAM_REAL(mprotect)(start, bytes, rights);
}

// Its callbacks are often instrumented, and libc holds a lock around them, which another thread would wait for outside
// of the simulation.
LOAM_EXPORTED int dl_iterate_phdr(int (*callback)(dl_phdr_info*, size_t, void*), void* data) {
  const Native native;
  return LOAM_REAL(dl_iterate_phdr)(callback, data);
}

#define LOAM_WAITS(result, name, parameters, arguments)                                                   \
  LOAM_EXPORTED result name parameters {                                                                  \
    if (now.thread != nullptr)                                                                            \
      fail("thread {} calls " #name                                                                       \
           ", which may wait for something outside of the simulated process; run it on the host instead", \
           now.thread->number);                                                                           \
    return LOAM_REAL(name) arguments;                                                                     \
  }

LOAM_WAITS(int, poll, (pollfd * files, nfds_t count, int ms), (files, count, ms))
LOAM_WAITS(int, select, (int n, fd_set* r, fd_set* w, fd_set* e, timeval* t), (n, r, w, e, t))
LOAM_WAITS(int, epoll_wait, (int file, epoll_event* events, int count, int ms), (file, events, count, ms))
LOAM_WAITS(int, accept, (int file, sockaddr* address, socklen_t* bytes), (file, address, bytes))
LOAM_WAITS(int, connect, (int file, const sockaddr* address, socklen_t bytes), (file, address, bytes))
LOAM_WAITS(ssize_t, recv, (int file, void* start, size_t bytes, int flags), (file, start, bytes, flags))
LOAM_WAITS(pid_t, waitpid, (pid_t process, int* status, int options), (process, status, options))
// What those would wait on is refused when it is made, where the message names the right place.
LOAM_WAITS(int, socket, (int family, int type, int protocol), (family, type, protocol))
LOAM_WAITS(int, socketpair, (int family, int type, int protocol, int* files), (family, type, protocol, files))
LOAM_WAITS(int, pipe, (int* files), (files))
LOAM_WAITS(int, pipe2, (int* files, int flags), (files, flags))
LOAM_WAITS(FILE*, popen, (const char* command, const char* mode), (command, mode))
LOAM_WAITS(int, system, (const char* command), (command))
LOAM_WAITS(int, posix_spawn,
           (pid_t * process, const char* path, const posix_spawn_file_actions_t* actions,
            const posix_spawnattr_t* attributes, char* const* words, char* const* environment),
           (process, path, actions, attributes, words, environment))
LOAM_WAITS(int, posix_spawnp,
           (pid_t * process, const char* path, const posix_spawn_file_actions_t* actions,
            const posix_spawnattr_t* attributes, char* const* words, char* const* environment),
           (process, path, actions, attributes, words, environment))
