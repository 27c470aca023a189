// Soak of the heap: threads that come and go allocate, free their own and each other's blocks of all sizes, reallocate,
// trim, and fork; between rounds, with everybody gone, all invariants are walked and every block is looked at.
//   LOAM_SEED gives another run, LOAM_ROUNDS more of it; LOAM_TEST_ALL=1: twenty times as many.
#include "runtime/heap/compositions/loam.hpp"
#include "tests/harness/checked_blocks.hpp"
#include "tests/harness/heaps.hpp"
#include "tests/harness/instrumented.hpp"

#include "runtime/base/random.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace loam::heap {
namespace {

using TestHeap = Heap<LoamComposition<tests::NoThreadsHook, tests::DyingFaults>>;
using Blocks = tests::CheckedBlocks<TestHeap>;

constexpr unsigned kRounds = tests::kInstrumented ? 6 : 60;
constexpr unsigned kLines = 4, kLives = 3, kSteps = 1500;
constexpr std::size_t kHeldBytesMax = std::size_t{24} << 20;
constexpr unsigned kChildSeconds = 60;

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* const asked = std::getenv(name);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}
std::uint64_t seed() { return number("LOAM_SEED", 1); }
std::uint64_t rounds() { return number("LOAM_ROUNDS", kRounds * (std::getenv("LOAM_TEST_ALL") != nullptr ? 20 : 1)); }

std::size_t some_bytes(base::Random& random) {
  switch (random.below(64)) {
    case 0:
      return 33000 + random.below(1 << 20);
    case 1:
    case 2:
    case 3:
      return 1000 + random.below(32000);
    default:
      return random.below(900);
  }
}

// Blocks that wait for whichever thread takes them.
class Exchange {
 public:
  void give(Blocks& blocks) {
    const std::lock_guard guard(mutex_);
    waiting_.take(blocks);
  }
  void take(Blocks& into) {
    const std::lock_guard guard(mutex_);
    into.take(waiting_);
  }
  const char* wrong() { return waiting_.wrong(); }  // while nobody else is there
  std::size_t bytes() {
    const std::lock_guard guard(mutex_);
    return waiting_.bytes();
  }

 private:
  std::mutex mutex_;
  Blocks waiting_;
};

void step(Blocks& own, base::Random& random) {
  const auto any = [&] { return random.below(static_cast<std::uint32_t>(own.size())); };
  const unsigned what = random.below(32);
  if (what < 14 || own.size() == 0) {
    own.allocate(some_bytes(random));
  } else if (what == 14) {
    own.allocate_zeroed(some_bytes(random));
  } else if (what == 15) {
    own.allocate_aligned(std::size_t{16} << random.below(12), 1 + some_bytes(random));
  } else if (what < 20) {
    own.reallocate(any(), 1 + some_bytes(random));
  } else if (what < 26) {
    own.free_sized(any());
  } else {
    own.free(any());
  }
}

void live(Exchange& exchange, base::Random random) {
  Blocks own;
  exchange.take(own);
  for (unsigned i = 0; i < kSteps; ++i) {
    step(own, random);
    while (own.bytes() > kHeldBytesMax / kLines) own.free(own.size() - 1);
    if (random.below(200) == 0) {
      exchange.give(own);
      exchange.take(own);
    }
    if (random.below(1000) == 0) TestHeap::trim();
  }
  EXPECT_STREQ(own.wrong(), nullptr);
  exchange.give(own);
  TestHeap::thread_exit();
}

// In the child of a fork beside threads that go on in the parent: it has a copy of the blocks, no other thread, and a
// heap that serves. returns its exit status
int go_on_alone(Blocks& own, base::Random random) {
#ifdef LOAM_INSTRUMENTED
  // The bookkeeping is the sanitizer's memory, whose locks a child may find taken by threads that it has not.
  static_cast<void>(own);
  void* blocks[100] = {};
  for (unsigned i = 0; i < 5000; ++i) {
    void*& block = blocks[random.below(100)];
    if (block != nullptr) TestHeap::deallocate(block);
    if ((block = TestHeap::allocate(1 + random.below(40000))) == nullptr) return 4;
  }
#else
  if (own.wrong() != nullptr) return 2;
  for (unsigned i = 0; i < 500; ++i) step(own, random);
  if (own.wrong() != nullptr) return 3;
  own.free_all();
#endif
  TestHeap::trim();
  return 0;
}

void fork_now(Blocks& own, std::uint64_t number) {
  const pid_t pid = fork();
  if (pid == 0) {
    TestHeap::after_fork_in_child();
    alarm(kChildSeconds);
    _exit(go_on_alone(own, base::Random(seed(), number)));
  }
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0) << "the child of fork " << number;
}

// Forks beside the others, with blocks of its own and of others.
void live_forking(Exchange& exchange, std::uint64_t number, base::Random random) {
  Blocks own;
  for (unsigned i = 0; i < 6; ++i) {
    exchange.take(own);
    for (unsigned n = 0; n < 100; ++n) step(own, random);
    while (own.bytes() > kHeldBytesMax / kLines) own.free(own.size() - 1);
    fork_now(own, number * 10 + i);
    exchange.give(own);
  }
  TestHeap::thread_exit();
}

TEST(HeapSoak, ThreadsThatComeGoAndForkLeaveNothingWrongAndNothingBehind) {
  Exchange exchange;
  for (std::uint64_t round = 0; round < rounds() && !HasFailure(); ++round) {
    std::vector<std::thread> lines;
    for (unsigned line = 0; line < kLines; ++line)
      lines.emplace_back([&, line] {
        for (unsigned life = 0; life < kLives; ++life)
          std::thread(live, std::ref(exchange), base::Random(seed(), (round * kLines + line) * kLives + life)).join();
      });
    lines.emplace_back(live_forking, std::ref(exchange), round, base::Random(seed() + 1, round));
    for (auto& line : lines) line.join();
    ASSERT_STREQ(TestHeap::verify(), nullptr) << "LOAM_SEED=" << seed() << ", round " << round;
    ASSERT_STREQ(exchange.wrong(), nullptr) << "LOAM_SEED=" << seed() << ", round " << round;
    EXPECT_LE(TestHeap::statistics().heaps_in_use, 0u) << "all threads have gone";
    // A thread that comes passes an idle heap by that another thread tends at that moment: one for each thread at most.
    EXPECT_LE(TestHeap::statistics().heaps_idle, std::uint64_t{2} * (kLines + 2)) << "heaps that came beside idle ones";
    Blocks left;
    exchange.take(left);
    while (left.size() > 200) left.free(left.size() / 2);
    exchange.give(left);
    TestHeap::thread_exit();
  }
  Blocks left;
  exchange.take(left);
  left.free_all();
  TestHeap::trim();
  TestHeap::thread_exit();
  EXPECT_STREQ(TestHeap::verify(), nullptr);
  EXPECT_EQ(TestHeap::statistics().committed_bytes, 0u) << "nobody holds a block";
  EXPECT_GE(TestHeap::statistics().remote_blocks_sent, rounds() * 1000) << "too few remote frees to prove anything";
}

}  // namespace
}  // namespace loam::heap
