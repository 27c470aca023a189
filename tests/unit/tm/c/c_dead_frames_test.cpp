// An abort restores no private variable (loam_tx_keep) of a function that has returned: its own frames may lie there.
// Those of coroutines are no such variables. Under every algorithm.
#include "include/loam/tm.h"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <alloca.h>
#include <ucontext.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace loam::tm {
namespace {

using tests::atomically;
using tests::closed;
using tests::in_c;

struct CDeadFrames : testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(All, CDeadFrames, testing::ValuesIn(Algorithms::kNames), tests::test_name_of);

alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

// Stack that the functions of an abort use is written to at every offset of a word.
constexpr std::size_t kOffsets = 1536, kGone = 24;

// The compiler has to take the variable for used.
void look_at(const void* variable) {
  static std::atomic<const void*> seen;
  seen = variable;
}

[[gnu::noinline]] void keep_own(loam_tx* tx) {
  std::uint64_t gone[kGone] = {};  // what lies there later is no zero
  look_at(gone);
  loam_tx_keep(tx, gone, sizeof gone);
  gone[0] = 1;
  look_at(gone);
}

[[gnu::noinline]] void keep_below(loam_tx* tx, std::size_t offset) {
  auto* const pad = static_cast<std::uint64_t*>(alloca(offset + sizeof(std::uint64_t)));
  pad[0] = 0;
  look_at(pad);
  keep_own(tx);
  look_at(pad);
}

template <class F>
void at_each_offset(F&& f) {
  for (std::size_t offset = 0; offset < kOffsets; offset += sizeof(std::uint64_t)) f(offset);
}

TEST_P(CDeadFrames, ARestartOfABodySkipsThem) {
  in_c(GetParam(), [] {
    at_each_offset([](std::size_t offset) {
      int attempts = 0;
      std::uint64_t own = 1;
      EXPECT_EQ(atomically([&](loam_tx* tx) {
                  EXPECT_EQ(own, 1u);
                  loam_tx_keep(tx, &own, sizeof own);
                  own = 2;
                  loam_tx_write_u64(tx, &x, 1);
                  keep_below(tx, offset);
                  if (++attempts == 1) loam_tx_restart(tx);
                }),
                LOAM_COMMITTED);
      EXPECT_EQ(attempts, 2);
    });
  });
}

[[gnu::noinline]] int attempts_of_the_open_form(std::size_t offset) {
  volatile int attempts = 0;
  volatile std::uint64_t own = 1;
  loam_tx_frame frame;
  if (loam_tx_begin(&frame, 0)) {
    EXPECT_EQ(own, 1u) << "it lies in the frame of the function that began";
    loam_tx_keep(frame.tx, const_cast<std::uint64_t*>(&own), sizeof own);
    own = 2;
    loam_tx_write_u64(frame.tx, &x, loam_tx_read_u64(frame.tx, &x) + 1);
    attempts = attempts + 1;
    keep_below(frame.tx, offset);
    if (attempts == 1) loam_tx_restart(frame.tx);
    loam_tx_commit(&frame);
  }
  return attempts;
}

TEST_P(CDeadFrames, ARestartOfTheOpenFormSkipsThem) {
  in_c(GetParam(), [] { at_each_offset([](std::size_t offset) { EXPECT_EQ(attempts_of_the_open_form(offset), 2); }); });
}

TEST_P(CDeadFrames, ACancelledTransactionSkipsThem) {
  in_c(GetParam(), [] {
    at_each_offset([](std::size_t offset) {
      EXPECT_EQ(atomically([&](loam_tx* tx) {
                  loam_tx_write_u64(tx, &x, 1);
                  keep_below(tx, offset);
                  loam_tx_cancel(tx);
                }),
                LOAM_CANCELLED);
    });
  });
}

TEST_P(CDeadFrames, AnExceptionThatLeavesTheBodySkipsThem) {
  in_c(GetParam(), [] {
    at_each_offset([](std::size_t offset) {
      std::uint64_t own = 1;
      EXPECT_THROW(atomically([&](loam_tx* tx) {
                     loam_tx_keep(tx, &own, sizeof own);
                     own = 2;
                     loam_tx_write_u64(tx, &x, 1);
                     keep_below(tx, offset);
                     throw offset;
                   }),
                   std::size_t);
      EXPECT_EQ(own, 1u);
    });
  });
}

TEST_P(CDeadFrames, AConflictSkipsThem) {
  bool waits = true;
  Algorithms::with<false>(GetParam(),
                          [&]<class A>() { waits = !A::kDescription.overlaps || readers_block_writers<A>(); });
  if (waits) GTEST_SKIP() << "the other thread would wait for this one";
  in_c(GetParam(), [] {
    at_each_offset([](std::size_t offset) {
      if (offset % 64 != 0) return;  // each takes a thread
      for (const std::size_t next : {offset, offset + 8, offset + 16}) {
        int attempts = 0;
        atomically([&](loam_tx* tx) {
          const std::uint64_t now = loam_tx_read_u64(tx, &x);
          keep_below(tx, next);
          if (++attempts == 1)
            std::thread([now] { atomically([now](loam_tx* other) { loam_tx_write_u64(other, &x, now + 1); }); }).join();
          loam_tx_write_u64(tx, &y, now);
        });
        EXPECT_EQ(attempts, 2);
      }
    });
  });
}

// Of a part that is undone alone: what lies below the part is gone, what lies above it is not.
[[gnu::noinline]] void run_a_part(loam_tx* tx, std::size_t offset) {
  std::uint64_t between = 1;
  look_at(&between);
  EXPECT_EQ(closed(tx,
                   [&](loam_tx* part) {
                     loam_tx_keep(part, &between, sizeof between);
                     between = 2;
                     keep_below(part, offset);
                     loam_tx_cancel(part);
                   }),
            LOAM_CANCELLED);
  EXPECT_EQ(between, 1u);
}

TEST_P(CDeadFrames, APartThatIsUndoneAloneSkipsItsOwn) {
  in_c(GetParam(), [] {
    at_each_offset([](std::size_t offset) {
      EXPECT_EQ(atomically([&](loam_tx* tx) { run_a_part(tx, offset); }), LOAM_COMMITTED);
      int runs = 0;
      std::uint64_t own = 1;
      EXPECT_EQ(atomically([&](loam_tx* tx) {
                  x = 0;
                  const auto first = [&](loam_tx* part) {
                    ++runs;
                    loam_tx_keep(part, &own, sizeof own);
                    own = 2;
                    keep_below(part, offset);
                    loam_tx_retry(part);
                  };
                  closed(tx, [&](loam_tx* part) {
                    loam_tx_or_else(
                        part, [](loam_tx* in, void* f) { (*static_cast<decltype(first)*>(f))(in); },
                        [](loam_tx*, void*) {}, const_cast<void*>(static_cast<const void*>(&first)));
                  });
                  EXPECT_EQ(own, 1u);
                }),
                LOAM_COMMITTED);
      EXPECT_GE(runs, 1);
    });
  });
}

// Their frames lay between the transaction and the part in which they were kept.
[[gnu::noinline]] void keep_own_in_a_part(loam_tx* tx, bool restart) {
  std::uint64_t gone[kGone] = {};
  look_at(gone);
  closed(tx, [&](loam_tx* part) {
    loam_tx_keep(part, gone, sizeof gone);
    gone[0] = 1;
    closed(part, [&](loam_tx* inner) {
      loam_tx_keep(inner, gone, sizeof gone);
      gone[1] = 1;
      if (restart) loam_tx_restart(inner);
    });
  });
  look_at(gone);
}

[[gnu::noinline]] void keep_in_a_part_below(loam_tx* tx, std::size_t offset, bool restart) {
  auto* const pad = static_cast<std::uint64_t*>(alloca(offset + sizeof(std::uint64_t)));
  pad[0] = 0;
  look_at(pad);
  keep_own_in_a_part(tx, restart);
  look_at(pad);
}

TEST_P(CDeadFrames, TheWholeTransactionSkipsThoseOfItsParts) {
  in_c(GetParam(), [] {
    for (const bool within : {false, true})
      at_each_offset([within](std::size_t offset) {
        int attempts = 0;
        std::uint64_t own = 1;
        EXPECT_EQ(atomically([&](loam_tx* tx) {
                    EXPECT_EQ(own, 1u);
                    closed(tx, [&](loam_tx* part) {
                      loam_tx_keep(part, &own, sizeof own);
                      own = 2;
                    });
                    ++attempts;
                    keep_in_a_part_below(tx, offset, within && attempts == 1);
                    if (attempts == 1) loam_tx_restart(tx);
                  }),
                  LOAM_COMMITTED);
        EXPECT_EQ(attempts, 2);
      });
  });
}

// ---- coroutines -----------------------------------------------------------------------------------------------------

#ifndef LOAM_TSAN  // which must be told of each change of the stack

// A function on a stack of its own, which runs until it pauses or ends.
class Coroutine {
 public:
  static constexpr std::size_t kStack = 256u << 10;

  Coroutine(void (*function)(Coroutine&), std::byte* stack) noexcept : function_(function) {
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack;
    inside_.uc_stack.ss_size = kStack;
    inside_.uc_link = &outside_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&inside_, reinterpret_cast<void (*)()>(&Coroutine::start), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
  }
  void resume() noexcept { swapcontext(&outside_, &inside_); }
  void pause() noexcept { swapcontext(&inside_, &outside_); }

 private:
  static void start(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<Coroutine*>(static_cast<std::uintptr_t>(high) << 32 | low);
    self.function_(self);
  }

  void (*function_)(Coroutine&);
  ucontext_t inside_, outside_;
};

std::uint64_t* local_of_a_coroutine = nullptr;

// It keeps and changes a local variable of its own in the transaction that its caller runs.
void changes_its_own(Coroutine& self) {
  std::uint64_t own = 1;
  local_of_a_coroutine = &own;
  self.pause();
  loam_tx_keep(loam_tx_current(), &own, sizeof own);
  own = 2;
  self.pause();
}

// The coroutine stands still while the attempt aborts: its frames are there afterwards.
[[gnu::noinline]] void abort_beside_a_coroutine(std::byte* stack) {
  Coroutine other(changes_its_own, stack);
  other.resume();
  int attempts = 0;
  EXPECT_EQ(atomically([&](loam_tx* tx) {
              EXPECT_EQ(*local_of_a_coroutine, 1u);
              loam_tx_write_u64(tx, &x, 1);
              if (++attempts > 1) return;
              other.resume();
              EXPECT_EQ(*local_of_a_coroutine, 2u);
              loam_tx_restart(tx);
            }),
            LOAM_COMMITTED);
  EXPECT_EQ(attempts, 2);
}

std::unique_ptr<std::byte[]> two_stacks() { return std::make_unique<std::byte[]>(2 * Coroutine::kStack); }
std::byte* stack_of_the_other = nullptr;

TEST_P(CDeadFrames, LocalsOfACoroutineComeBack) {
  in_c(GetParam(), [one_thread = GetParam() == "sequential"] {
    const auto stacks = two_stacks();
    abort_beside_a_coroutine(stacks.get());
    if (!one_thread) std::thread([&] { abort_beside_a_coroutine(stacks.get()); }).join();
    // The transaction runs in a coroutine itself, with the other one above and below it.
    for (const bool above : {false, true}) {
      stack_of_the_other = stacks.get() + (above ? Coroutine::kStack : 0);
      Coroutine self([](Coroutine&) { abort_beside_a_coroutine(stack_of_the_other); },
                     stacks.get() + (above ? 0 : Coroutine::kStack));
      self.resume();
    }
  });
}

TEST_P(CDeadFrames, InACoroutineTheyAreSkippedAsElsewhere) {
  in_c(GetParam(), [] {
    const auto stacks = two_stacks();
    Coroutine self(
        [](Coroutine&) {
          at_each_offset([](std::size_t offset) { EXPECT_EQ(attempts_of_the_open_form(offset), 2); });
          at_each_offset([](std::size_t offset) {
            EXPECT_EQ(atomically([&](loam_tx* tx) { run_a_part(tx, offset); }), LOAM_COMMITTED);
          });
        },
        stacks.get());
    self.resume();
  });
}

#endif

}  // namespace
}  // namespace loam::tm
