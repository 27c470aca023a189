#include "workloads/harness/team.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/affinity.hpp"
#include "workloads/harness/run_delay.hpp"

#include <alloca.h>
#include <pthread.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace loam::workloads {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

struct ThreadArgument {
  Team* team;
  unsigned index;
};

// Static: a process runs one team, and its bookkeeping must not come from the allocator under study.
constinit Team::Times times[kThreadsMax];
constinit ThreadArgument arguments[kThreadsMax];
constinit pthread_t threads[kThreadsMax];

constexpr std::size_t kStackOffsetMax = 65536;

// Of the workers' stacks, in bytes. What is no number counts as 0: the lab sets it, nobody else needs to.
std::size_t stack_offset() noexcept {
  const char* const text = std::getenv("LOAM_STACK_OFFSET");
  std::size_t bytes = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), bytes);
  return std::min(bytes, kStackOffsetMax);
}

}  // namespace

Team::Team(const Options& options, std::uint64_t duration_ms) noexcept
    : options_(options),
      duration_ms_(duration_ms),
      start_(options.threads + 1),
      phase_(duration_ms == 0 || options.warmup_ms == 0 ? Phase::timed : Phase::warmup) {}

void Team::Member::begin_timed() noexcept {
  times[index_].run_delay_ns = this_thread_run_delay_ns();
  times[index_].cpu_ns = platform::thread_cpu_ns();
  times[index_].started_ns = platform::monotonic_ns();
}

void Team::Member::end_timed() noexcept {
  times[index_].ended_ns = platform::monotonic_ns();
  times[index_].cpu_ns = platform::thread_cpu_ns() - times[index_].cpu_ns;
  auto& delay = times[index_].run_delay_ns;
  if (const auto now = this_thread_run_delay_ns(); now && delay)
    *delay = *now - *delay;
  else
    delay.reset();
}

void* Team::thread_main(void* argument) {
  const auto& [team, index] = *static_cast<ThreadArgument*>(argument);
  const auto cpus = team->options_.cpus();
  const unsigned cpu = cpus[index % cpus.size()];
  LOAM_CHECK(platform::pin_this_thread(cpu), "thread {} cannot be placed on processor {}", index, cpu);
  Member member(*team, index);
  // Written to, so that the compiler keeps it below the frames of the work.
  auto* const gap = static_cast<volatile char*>(alloca(team->stack_offset_ + 1));
  gap[0] = 0;
  team->call_(team->context_, member);
  return nullptr;
}

void Team::run(void* context, Call call) {
  context_ = context;
  stack_offset_ = stack_offset();
  call_ = call;
  for (unsigned i = 0; i < options_.threads; ++i) {
    arguments[i] = {this, i};
    const int failure = ::pthread_create(&threads[i], nullptr, thread_main, &arguments[i]);
    LOAM_CHECK(failure == 0, "thread {} of {} cannot be made: {}", i + 1, options_.threads,
               std::string_view(std::strerror(failure)));
  }
  start_.arrive_and_wait();
  if (duration_ms_ != 0) {
    if (options_.warmup_ms != 0) {
      platform::sleep_ns(options_.warmup_ms * kNsPerMs);
      phase_.store(Phase::timed, std::memory_order_relaxed);  // relaxed: see in()
    }
    platform::sleep_ns(duration_ms_ * kNsPerMs);
    phase_.store(Phase::done, std::memory_order_relaxed);  // relaxed: see in()
  }
  for (unsigned i = 0; i < options_.threads; ++i) ::pthread_join(threads[i], nullptr);
}

double Team::elapsed_s() const noexcept {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  for (const auto& time : std::span(times).first(options_.threads)) {
    first = std::min(first, time.started_ns);
    last = std::max(last, time.ended_ns);
  }
  return static_cast<double>(last - first) * kSecondsPerNs;
}

std::optional<double> Team::run_delay_s() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& time : std::span(times).first(options_.threads)) {
    if (!time.run_delay_ns) return std::nullopt;
    sum += *time.run_delay_ns;
  }
  return static_cast<double>(sum) * kSecondsPerNs;
}

double Team::thread_cpu_s() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& time : std::span(times).first(options_.threads)) sum += time.cpu_ns;
  return static_cast<double>(sum) * kSecondsPerNs;
}

}  // namespace loam::workloads
