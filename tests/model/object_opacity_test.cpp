// Histories of object transactions, from real threads: opaque where reads are checked; where they are not, what was
// committed is serializable, and some doomed attempt really saw what was never together in memory.
#include "runtime/base/random.hpp"
#include "runtime/platform/machine.hpp"
#include "tests/harness/managed.hpp"
#include "tests/model/opacity.hpp"

#include <gtest/gtest.h>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Global;
using gc::Heap;
using gc::Local;
using gc::Mutator;
using gc::Placement;
using gc::Transaction;
using gc::Transactions;
using gc::TxSettings;

constexpr unsigned kThreads = 3, kTransactions = 3, kObjects = 3, kEventsMax = 5;

struct Recorded {
  History history;
  std::uint64_t aborts = 0;
};

// Wastes a little time, so that attempts overlap also where threads take turns on a processor.
void loiter(base::Random& random) {
  const auto how = random.below(8);
  if (how == 0) std::this_thread::yield();
  for (std::uint32_t i = random.below(200); i != 0; --i) platform::pause();
}

Recorded record(std::uint64_t seed, const TxSettings& settings, unsigned collect_every) {
  gc::Settings small = small_heap(collect_every);
  small.memory_bytes = std::size_t{1} << 20;
  Heap heap(small);
  Transactions all(heap, settings);
  Global<gc::RefArray<Cell>> shared(heap);
  {
    Mutator mutator(heap);
    shared.set(mutator.allocate_array<gc::RefArray<Cell>>(kObjects));
    for (unsigned i = 0; i < kObjects; ++i) {
      Cell* const cell = make_cell(mutator, 0);
      mutator.store(shared.get(), shared.get()->at<gc::Ref<Cell>>(i), cell);
    }
  }
  std::atomic<std::uint64_t> clock{1};
  std::atomic<unsigned> ready{0};
  std::vector<History> parts(kThreads);
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      Mutator mutator(heap);
      Transaction tx(all, mutator);
      Local<gc::RefArray<Cell>> cells(mutator, shared.get());
      Local<Cell> cell(mutator);
      base::Random random(seed, thread);
      History& mine = parts[thread];
      std::uint64_t written = 0;
      ++ready;
      while (ready != kThreads) mutator.safepoint();
      for (unsigned i = 0; i < kTransactions; ++i) {
        // An attempt began after this, at the latest with its first event.
        std::uint64_t begun = clock++;
        atomically(tx, [&](Transaction& t) {
          if (!mine.empty() && mine.back().end == 0) {
            mine.back().end = clock++;
            // One that saw nothing says nothing.
            if (mine.back().events.empty()) mine.pop_back();
          }
          mine.emplace_back();
          mine.back().thread = thread;
          mine.back().begin = begun;
          for (unsigned event = 1 + random.below(kEventsMax); event != 0; --event) {
            const unsigned variable = random.below(kObjects);
            cell = static_cast<Cell*>(cells->at<gc::Ref<Cell>>(variable).slot().load());
            begun = clock++;
            // Read before each write, so that the order of versions is known.
            const auto value = t.read(cell, &Cell::number);
            mine.back().events.push_back({EventKind::read, variable, value});
            loiter(random);
            if (random.below(2) == 0) {
              const std::uint64_t fresh = (std::uint64_t{thread + 1} << 32) + ++written;
              t.write(cell, &Cell::number, fresh);
              mine.back().events.push_back({EventKind::write, variable, fresh});
              loiter(random);
            }
            if (random.below(4) == 0) mutator.allocate<Cell>();
            begun = clock++;
          }
        });
        mine.back().committed = true;
        mine.back().end = clock++;
      }
    });
  for (auto& thread : threads) thread.join();
  Recorded run;
  for (auto& part : parts) run.history.insert(run.history.end(), part.begin(), part.end());
  for (const auto& attempt : run.history) run.aborts += attempt.committed ? 0 : 1;
  return run;
}

struct Variant {
  const char* name;
  Placement placement;
  bool nursery;
  unsigned collect_every;
};
class ObjectOpacity : public testing::TestWithParam<Variant> {
 protected:
  static TxSettings settings() {
    TxSettings settings;
    settings.placement = GetParam().placement;
    settings.nursery = GetParam().nursery;
    settings.contention = gc::Contention::delay;
    settings.chunk_bytes = 256;
    settings.alone_after = 1000;
    return settings;
  }
};

std::uint64_t runs() {
  const char* const given = std::getenv("LOAM_HISTORIES");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 40;
}

TEST_P(ObjectOpacity, CheckedReadsGiveOpaqueHistories) {
  std::uint64_t aborts = 0;
  for (std::uint64_t seed = 1; seed <= runs(); ++seed) {
    const Recorded run = record(seed, settings(), GetParam().collect_every);
    aborts += run.aborts;
    const auto violation = OpacityChecker(run.history).violation();
    ASSERT_FALSE(violation) << "seed " << seed << ": " << *violation << "\n" << to_string(run.history);
  }
  EXPECT_GT(aborts, runs() / 10) << "too few transactions met";
}

TEST_P(ObjectOpacity, WithoutChecksWhatIsCommittedIsSerializable) {
  for (std::uint64_t seed = 1; seed <= runs(); ++seed) {
    TxSettings unchecked = settings();
    unchecked.opaque = false;
    Recorded run = record(seed, unchecked, GetParam().collect_every);
    std::erase_if(run.history, [](const AttemptRecord& attempt) { return !attempt.committed; });
    const auto violation = OpacityChecker(run.history).violation();
    ASSERT_FALSE(violation) << "seed " << seed << ": " << *violation << "\n" << to_string(run.history);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ObjectOpacity,
                         testing::Values(Variant{"heap", Placement::heap, false, 3},
                                         Variant{"dedicated", Placement::dedicated, false, 0},
                                         Variant{"nursery", Placement::arena, true, 5}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace loam::tests
