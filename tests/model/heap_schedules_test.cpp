// Blocks that change hands while threads come and go: many small runs, each with a schedule of its own.
//   Half of the runs are scheduled: one thread at a time, handed over at the heap's test points as the seed says, hence
//   repeatable; the others run freely with random stalls at the same points. At the end of each every block has kept
//   its contents, invariants hold, and with all blocks freed and all threads gone nothing is in use: no batch was lost
//   on the way, none was taken twice. Where a thread may hold the registry's lock it is not handed over: the next one
//   would wait for it for ever. LOAM_SEED, LOAM_RUNS (LOAM_TEST_ALL=1: fifty times as many).
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/instrumented.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/watchdog.hpp"
#include "tests/model/schedule.hpp"

#include "runtime/base/points.hpp"
#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;

constexpr long kRuns = tests::kInstrumented ? 300 : 1500;

long number(const char* name, long otherwise) {
  const char* const asked = std::getenv(name);
  return asked != nullptr ? std::atol(asked) : otherwise;
}
long runs() { return number("LOAM_RUNS", kRuns * (std::getenv("LOAM_TEST_ALL") != nullptr ? 50 : 1)); }

// A block as the runs fill it.
struct Filled {
  std::uint32_t bytes, value;

  static Filled* make(std::uint32_t bytes, std::uint32_t value) {
    auto* const block = static_cast<Filled*>(TestHeap::allocate(bytes));
    *block = {bytes, value};
    std::memset(block + 1, static_cast<int>(value & 0xff), bytes - sizeof(Filled));
    return block;
  }
  // returns whether it was as it was made
  static bool drop(Filled* block) {
    const auto* const contents = reinterpret_cast<const std::byte*>(block + 1);
    const bool whole = tests::holds(contents, block->bytes - sizeof(Filled), static_cast<unsigned char>(block->value));
    TestHeap::deallocate(block);
    return whole;
  }
};

class HeapRuns {
 public:
  static constexpr unsigned kThreads = 3, kPlaces = 192;

  struct Counts {
    std::atomic<std::uint64_t> pushing{0}, sent{0}, tending{0}, attaching{0}, taken{0};
  };

  explicit HeapRuns(std::uint64_t seed) : seed_(seed) {
#ifdef LOAM_CHECKED
    base::point_hook.store(&HeapRuns::reach, std::memory_order_release);
#endif
  }
  HeapRuns(const HeapRuns&) = delete;
  HeapRuns& operator=(const HeapRuns&) = delete;
  ~HeapRuns() {
#ifdef LOAM_CHECKED
    base::point_hook.store(nullptr, std::memory_order_release);
#endif
  }

  // nullptr, or what did not hold.
  const char* run(std::uint64_t index) {
    base::Random shape(seed_, index);
    scheduled_ = index % 2 == 0;
    const unsigned switch_percent = 20 + shape.below(70), steps = 10 + shape.below(40);
    wrong_ = 0;
    if (scheduled_) schedule_.start(kThreads, seed_ * 1'000'003 + index, switch_percent);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([this, t, index, steps] {
        Worker worker{this, t, false, base::Random(seed_ + 1, index * 8 + t)};
        current() = &worker;
        if (scheduled_) schedule_.enter(t);
        play(worker, base::Random(seed_, (index + 1) * 8 + t), steps);
        step(worker, true);
        TestHeap::thread_exit();
        current() = nullptr;
        if (scheduled_) schedule_.leave(t);
      });
    for (auto& thread : threads) thread.join();
    if (const char* const broken = TestHeap::verify()) return broken;
    for (auto& place : places_)
      if (Filled* const block = place.exchange(nullptr); block != nullptr && !Filled::drop(block)) ++wrong_;
    TestHeap::trim();
    TestHeap::thread_exit();
    if (const char* const broken = TestHeap::verify()) return broken;
    if (wrong_ != 0) return "a block lost its contents";
    return TestHeap::statistics().committed_bytes == 0 ? nullptr : "memory is in use though nobody holds a block";
  }

  const Counts& counts() const { return counts_; }

 private:
  struct Worker {
    HeapRuns* runs;
    unsigned self;
    bool may_hold_lock;
    base::Random stalls;
  };
  static Worker*& current() {
    thread_local Worker* worker = nullptr;
    return worker;
  }

  [[maybe_unused]] static void reach(const char* name) {
    if (Worker* const worker = current()) worker->runs->point(*worker, name);
  }

  void point(Worker& worker, std::string_view name) {
    count(name);
    if (!scheduled_) return tests::stall(worker.stalls);
    if (!worker.may_hold_lock && !is_under_a_lock(name)) schedule_.point(worker.self);
    if (name == "heap.tending" || name == "heap.leaving" || name == "heap.attaching") worker.may_hold_lock = true;
  }

  // Points that are reached with a lock of the pages held: another thread would wait for it for ever.
  static bool is_under_a_lock(std::string_view name) {
    return name == "heap.passing_units" || name == "heap.taking_descriptor";
  }

  void count(std::string_view name) {
    counts_.pushing += name == "heap.pushing";
    counts_.sent += name == "heap.sent";
    counts_.tending += name == "heap.tending";
    counts_.attaching += name == "heap.attaching";
    counts_.taken += name == "heap.taken";
  }

  // The next call begins; locked: with the lock at once, as far as the schedule cares.
  static void step(Worker& worker, bool locked) { worker.may_hold_lock = locked; }

  void play(Worker& worker, base::Random random, unsigned steps) {
    constexpr std::uint32_t kSizes[] = {16, 48, 48, 700, 1900, 9000};
    for (unsigned i = 0; i < steps; ++i) {
      step(worker, false);
      const unsigned what = random.below(16), from = random.below(kPlaces);
      if (what < 6) {
        const std::uint32_t bytes = kSizes[random.below(std::size(kSizes))];
        for (unsigned n = 1 + random.below(50); n > 0; --n) put(worker, (from + n) % kPlaces, bytes, random());
      } else if (what < 13) {
        for (unsigned n = 1 + random.below(90); n > 0; --n) {
          step(worker, false);
          Filled* const block = places_[(from + n) % kPlaces].exchange(nullptr);
          if (block != nullptr && !Filled::drop(block)) ++wrong_;
        }
      } else if (what < 15) {
        TestHeap::thread_exit();
      } else {
        step(worker, true);
        TestHeap::trim();
      }
    }
  }

  void put(Worker& worker, unsigned place, std::uint32_t bytes, std::uint64_t value) {
    step(worker, false);
    Filled* const old = places_[place].exchange(Filled::make(bytes, static_cast<std::uint32_t>(value)));
    step(worker, false);
    if (old != nullptr && !Filled::drop(old)) ++wrong_;
  }

  const std::uint64_t seed_;
  bool scheduled_ = false;
  tests::TokenSchedule schedule_;
  std::atomic<unsigned> wrong_{0};
  std::atomic<Filled*> places_[kPlaces] = {};
  Counts counts_;
};

TEST(HeapSchedules, NoBlockIsLostOnItsWayHome) {
  LOAM_NEEDS_POINTS();
  // Its threads give their processor up at each point: beside another test that computes they hardly run.
  tests::may_take(60);
  const auto seed = static_cast<std::uint64_t>(number("LOAM_SEED", 1));
  HeapRuns all(seed);
  const long count = runs();
  for (long i = 0; i < count; ++i)
    ASSERT_STREQ(all.run(static_cast<std::uint64_t>(i)), nullptr) << "LOAM_SEED=" << seed << ", run " << i;
  const HeapRuns::Counts& counts = all.counts();
  RecordProperty("batches", static_cast<int>(counts.sent));
  RecordProperty("batches_pushed_beside_another", static_cast<int>(counts.pushing - counts.sent));
  RecordProperty("batches_sent_to_idle_heaps", static_cast<int>(counts.tending));
  EXPECT_GE(counts.sent, static_cast<std::uint64_t>(count)) << "too few batches to prove anything";
  EXPECT_GE(counts.pushing - counts.sent, static_cast<std::uint64_t>(count) / 100) << "no batch met another";
  EXPECT_GE(counts.tending, static_cast<std::uint64_t>(count) / 10) << "no batch met a thread's end";
  EXPECT_GE(counts.attaching, static_cast<std::uint64_t>(count) * 3);
  EXPECT_GE(counts.taken, static_cast<std::uint64_t>(count) / 10);
}

}  // namespace
}  // namespace loam::heap
