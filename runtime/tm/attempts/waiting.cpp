#include "runtime/tm/attempts/waiting.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/attempts/serial.hpp"

#include <algorithm>
#include <array>

namespace loam::tm::waiting {
namespace {

constexpr unsigned kSleepersMax = 1U << 30;
// A waiter that was woken without a change checks this many times before it sleeps again. It checks every kPollNs, or
// less often if a check takes long: it uses at most one part in kShare of a core for checks.
constexpr unsigned kPolls = 64;
constexpr std::uint64_t kShare = 256;

constexpr std::size_t kWords = kSignatureBits / 64;
// The signature of all records that sleepers have read. relaxed throughout: waiting.A and waiting.B order it.
alignas(platform::kApartBytes) constinit std::array<std::atomic<std::uint64_t>, kWords> marks{};

// The number of wake-ups; waiters sleep on this futex word. A waiter that is woken before it sleeps does not sleep at
// all.
constinit std::atomic<std::uint32_t> wakes{0};

std::size_t bit_of(const Orec& record) noexcept {
  return (reinterpret_cast<std::uintptr_t>(&record) / sizeof(Orec) * 0x9E3779B97F4A7C15ULL) /
         (~0ULL / kSignatureBits + 1);
}
bool is_marked(const Orec& record) noexcept {
  const std::size_t bit = bit_of(record);
  return (marks[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) != 0;
}

// Sleeps until still() is false.
template <class Still>
void sleep_while(const Still& still, const Awaited& awaited, Descriptor& d) noexcept {
  for (;;) {
    const std::uint32_t wakes_before = wakes.load(std::memory_order_acquire);  // waiting.B
    shared.sleepers.exchange(1, std::memory_order_seq_cst);
    if (awaited.mark_all != nullptr)
      awaited.mark_all(d);
    else
      for (auto& word : marks) word.store(~0ULL, std::memory_order_relaxed);
    platform::announce_heavy();  // waiting.A
    LOAM_POINT("tm.registered");
    if (!still()) return;
    const std::uint64_t since = platform::monotonic_ns();
    LOAM_POINT("tm.sleeping");
    platform::futex_wait(wakes, wakes_before);
    if (!still()) return;
    if (platform::monotonic_ns() - since >= kRareNs) continue;
    for (unsigned poll = 0; poll < kPolls; ++poll) {
      const std::uint64_t before = platform::monotonic_ns();
      if (!still()) return;
      platform::sleep_ns(std::max(kPollNs, (platform::monotonic_ns() - before) * kShare));
    }
  }
}

}  // namespace

void wake_all() noexcept {
  for (auto& word : marks) word.store(0, std::memory_order_relaxed);
  shared.sleepers.store(0, std::memory_order_relaxed);
  wakes.fetch_add(1, std::memory_order_release);  // waiting.B
  platform::futex_wake(wakes, kSleepersMax);
}

void wake_readers(void* descriptor) noexcept {
  Descriptor& d = *static_cast<Descriptor*>(descriptor);
  for (const WriteEntry* entry = d.writes.begin(); entry != d.woken_end; ++entry)
    if (is_marked(shared.map.record(entry->address.load(std::memory_order_relaxed))))
      return wake_all();  // relaxed: own
}

void mark(const Orec& record) noexcept {
  const std::size_t bit = bit_of(record);
  marks[bit / 64].fetch_or(std::uint64_t{1} << bit % 64, std::memory_order_relaxed);
}

void wait(const Awaited& awaited, Descriptor& d) noexcept {
  const auto still = [&] { return awaited.unchanged(d) && serial::generation() == d.generation; };
  if (awaited.mark_all != nullptr) return sleep_while(still, awaited, d);
  // CPU time: a thread that was not running has cost nothing.
  std::uint64_t& woken = d.contention.woken_cpu;
  const bool in_vain = woken != 0;
  if (in_vain) {
    LOAM_POINT("tm.pausing");
    platform::sleep_ns(std::clamp((platform::thread_cpu_ns() - woken) * kShare, kPollNs, kPauseNsMax));
  }
  // After a pause among frequent commits there is nothing to sleep for, and no reason to interrupt those who commit.
  if (!in_vain || still()) sleep_while(still, awaited, d);
  woken = platform::thread_cpu_ns();
}

}  // namespace loam::tm::waiting
