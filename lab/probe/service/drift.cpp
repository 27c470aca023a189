// Every exchange of a slot is a release and an acquire, so that who frees a block sees what its maker wrote.
#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "scenarios.hpp"

namespace service {
namespace {

constexpr std::size_t kSlots = 400'000;
constexpr std::int64_t kHeldBytes = 200 << 20;
constexpr long kAskedEvery = 64;
constexpr std::size_t kMeans[] = {40, 90, 200, 450, 1000, 2200, 5000, 1000, 200, 60};
// One block in so many is this many times as long.
constexpr std::uint64_t kLongOneIn = 256, kLongTimes = 20;
// Of all blocks one in so many stays.
constexpr std::size_t kKeptOneIn = 50;

std::atomic<void*> slots[kSlots];

std::size_t drawn(Random& random, std::size_t mean) {
  const std::size_t size = 16 + random.below(mean) + random.below(mean);
  return random.next() % kLongOneIn == 0 ? size * kLongTimes : size;
}

void release(Live& live, int thread, void* block) {
  if (block == nullptr) return;
  live.add(thread, -size_of(block));
  std::free(block);
}

}  // namespace

void drift(Course& course, Live& live, int threads, long operations, std::uint64_t seed) {
  std::barrier phase(threads + 1);
  std::vector<std::thread> team;
  for (int thread = 0; thread < threads; ++thread) {
    team.emplace_back([&, thread] {
      Random random(seed * 1000 + static_cast<std::uint64_t>(thread));
      for (const std::size_t mean : kMeans) {
        phase.arrive_and_wait();
        bool full = false;
        for (long i = 0; i < operations; ++i) {
          // Asked now and then: to read the counts of all threads each time would be what is measured.
          if (i % kAskedEvery == 0) full = live.bytes() >= kHeldBytes;
          void* made = nullptr;
          if (!full) {
            const std::size_t size = drawn(random, mean);
            made = make(size);
            live.add(thread, static_cast<std::int64_t>(size));
          }
          release(live, thread, slots[random.below(kSlots)].exchange(made, std::memory_order_acq_rel));
        }
        phase.arrive_and_wait();
      }
    });
  }
  for ([[maybe_unused]] const std::size_t mean : kMeans) {
    phase.arrive_and_wait();
    phase.arrive_and_wait();
    course.sample("phase");
  }
  for (std::thread& one : team) one.join();
  for (std::size_t place = 0; place < kSlots; ++place) {
    if (place % kKeptOneIn != 0) release(live, threads, slots[place].exchange(nullptr, std::memory_order_relaxed));
  }
  course.sample("freed");
  // A service that has nothing to do still serves a call now and then.
  for (int call = 0; call < 10; ++call) {
    std::free(make(200'000));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  course.sample("later");
}

}  // namespace service
