// The barrier of the rare side (machine.hpp). In a file of its own: a program without this side does not link it, and
// makes no system call for it when it starts.
#include "runtime/platform/machine.hpp"

#include "runtime/base/check.hpp"
#include "runtime/base/found.hpp"
#include "runtime/base/points.hpp"

#include <cerrno>

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace loam::platform {

#ifdef LOAM_TSAN
void announce_heavy() noexcept {
  static constinit std::atomic<std::uint64_t> meeting_point{0};
  meeting_point.exchange(1, std::memory_order_seq_cst);
}
#else

namespace {

bool register_membarrier() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Where membarrier is refused (old kernels, seccomp, valgrind): taking away a right from a page that was just written
// makes the kernel interrupt every core that runs this process, to drop its cached translation. An interrupt drains the
// store buffer, which is all that is asked for. Where processors drop translations by broadcast there is no such way.
// Each call maps its own page: on a shared one a thread could take away the right while another is about to write.
void interrupt_all_cores() noexcept {
  LOAM_CHECK(kLostRightsInterrupt,
             "announce_heavy: the kernel refuses membarrier (errno {}), which Loam cannot do "
             "without on this processor; allow it in the seccomp filter, or use Linux 4.14 or later",
             errno);
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  LOAM_CHECK(page != MAP_FAILED, "announce_heavy: no page for the fallback of membarrier (errno {})", errno);
  LOAM_POINT("platform.barrier_page");
  std::atomic_ref<int>(*static_cast<int*>(page)).fetch_add(1, std::memory_order_seq_cst);
  LOAM_CHECK(mprotect(page, 4096, PROT_READ) == 0, "announce_heavy: mprotect failed (errno {})", errno);
  munmap(page, 4096);
}

constinit base::Found<bool> membarrier_works;

// When the program is loaded. In a process with one thread this takes less than a microsecond. In one with more the
// kernel waits until each processor has switched tasks: 7 to 15 ms, which the first barrier would take.
[[gnu::constructor]] void register_early() noexcept { membarrier_works.get(register_membarrier); }

}  // namespace

void announce_heavy() noexcept {
  if (membarrier_works.get(register_membarrier) && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  interrupt_all_cores();
}

#endif

}  // namespace loam::platform
