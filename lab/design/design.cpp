// The allocators `design:...`: runtime/heap/design with the factors of LOAM_DESIGN, as "metadata=block,cache=0".
#include "runtime/heap/design/design.hpp"

#include "lab/design/exported.hpp"
#include "lab/design/settings.hpp"
#include "lab/design/start_once.hpp"
#include "lab/design/thread_end.hpp"

#include <unistd.h>

extern "C" [[gnu::visibility("default")]] const char loam_design_version[] = "loam design 1.0.0";

namespace loam::design {
namespace {

using heap::design::Design;
using heap::design::Front;

constinit Design design;
constinit StartOnce started;
constinit ThreadEnd thread_end;
thread_local constinit Front* mine = nullptr;

void end_of_thread(void* front) {
  mine = nullptr;
  design.end_thread(*static_cast<Front*>(front));
}
void before_fork() { design.before_fork(); }
void after_fork() { design.after_fork(); }

void start() noexcept {
  const char* const given = variable_of_environment("LOAM_DESIGN");
  heap::design::Factors factors;
  char message[400];
  const std::string_view wrong = heap::design::apply(given == nullptr ? "" : given, factors, message);
  LOAM_CHECK(wrong.empty(), "LOAM_DESIGN={}: {}", std::string_view(given == nullptr ? "" : given), wrong);
  const bool works = platform::has_transactions();
  LOAM_CHECK(!factors.is(heap::design::Guard::transaction) || works,
             "LOAM_DESIGN: guard=transaction, and this machine has no hardware transactions; take guard=elided or "
             "guard=lock, or a simulated machine that has them");
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  LOAM_CHECK(design.start(factors, processors < 1 ? 1 : static_cast<unsigned>(processors)),
             "design: the system refuses 64 MiB of addresses");
}

[[gnu::noinline, gnu::cold]] Front* begin_thread() noexcept {
  started.ensure(start);
  Front* const front = design.begin_thread();
  if (front == nullptr) return nullptr;
  mine = front;  // before what follows, which may allocate
  thread_end.start(end_of_thread, before_fork, after_fork);
  thread_end.watch(front);
  return front;
}

Front* front() noexcept {
  Front* const own = mine;
  return own != nullptr ? own : begin_thread();
}

}  // namespace

void* allocate(std::size_t bytes) noexcept {
  Front* const own = front();
  return own == nullptr ? nullptr : design.allocate(*own, bytes);
}
void* allocate_aligned(std::size_t alignment, std::size_t bytes) noexcept {
  return front() == nullptr ? nullptr : Design::allocate_aligned(alignment, bytes);
}
void release(void* block) noexcept {
  // Without memory for its cache a thread loses what it frees.
  if (Front* const own = front()) design.release(*own, block);
}
std::size_t usable(const void* block) noexcept { return design.usable(block); }
bool is_zeroed(std::size_t bytes) noexcept { return bytes > heap::design::kSmallMax; }

}  // namespace loam::design
