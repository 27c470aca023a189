// What a program behind -fgnu-tm must not reach: it ends, with words that say why (docs/libitm.md).
#include "tests/unit/itm/threads.hpp"
#include "tests/unit/itm/with_barriers.hpp"

#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

// Functions of the library, as a program calls them that was not compiled with -fgnu-tm: GCC knows these names.
extern "C" {
void itm_commit() __asm__("_ITM_commitTransaction");
void itm_abort(unsigned reason, const void* place) __asm__("_ITM_abortTransaction");
void itm_change_mode(int mode) __asm__("_ITM_changeTransactionMode");
void itm_add_action(void (*call)(void*), std::uint64_t resuming, void* argument) __asm__("_ITM_addUserCommitAction");
void itm_error(const void* place, int code) __asm__("_ITM_error");
}

namespace {

long number;
void act(void*) {}

[[gnu::transaction_pure, gnu::noinline]] void abort_now(unsigned reason) { itm_abort(reason, nullptr); }
[[gnu::transaction_pure, gnu::noinline]] void change_mode(int mode) { itm_change_mode(mode); }
[[gnu::transaction_pure, gnu::noinline]] void add_action(std::uint64_t resuming) {
  itm_add_action(&act, resuming, nullptr);
}
[[gnu::transaction_unsafe, gnu::noinline]] void unsafe() { ++number; }

TEST(RefusedCalls, CallsOutsideOfTransactions) {
  EXPECT_DEATH(itm_commit(), "_ITM_commitTransaction\\(\\) outside of transactions");
  EXPECT_DEATH(abort_now(1), "_ITM_abortTransaction\\(\\) outside of transactions");
  EXPECT_DEATH(change_mode(0), "_ITM_changeTransactionMode\\(\\) outside of transactions");
  EXPECT_DEATH(add_action(1), "_ITM_addUserCommitAction\\(\\) outside of transactions");
}

void aborts_for(unsigned reason) {
  __transaction_atomic {
    ++number;
    abort_now(reason);
  }
}
void aborts_irrevocable() {
  __transaction_relaxed {
    unsafe();
    abort_now(1);
  }
}
void changes_to(int mode) {
  __transaction_relaxed {
    ++number;
    change_mode(mode);
  }
}

TEST(RefusedCalls, ACancelThatNothingCanTakeBack) {
  EXPECT_DEATH(aborts_irrevocable(), "a transaction that is irrevocable is cancelled");
  EXPECT_DEATH(aborts_for(2), "_ITM_abortTransaction\\(\\) with reason 2");
  EXPECT_DEATH(changes_to(5), "_ITM_changeTransactionMode\\(5\\): 0, serial and irrevocable, is all there is");
}

using Function = long (*)(long) transaction_safe;
[[gnu::noinline]] long not_safe(long value) { return value + number; }
Function volatile hidden;

void calls_without_a_clone() {
  // As a cast in C does, or a library that was compiled without -fgnu-tm.
  hidden = reinterpret_cast<Function>(reinterpret_cast<std::uintptr_t>(&not_safe));
  const Function called = hidden;
  __transaction_atomic { number += called(1); }
}

TEST(RefusedCalls, AFunctionWithoutAClone) {
  // Plain code calls it as it is.
  const char* const algorithm = std::getenv("LOAM_ITM_ALGORITHM");
  if (algorithm != nullptr && std::string_view(algorithm) == "hybrid-norec") GTEST_SKIP() << "hardware runs plain code";
  EXPECT_DEATH(calls_without_a_clone(), "is called in an atomic transaction and has no transactional clone");
}

void adds_an_action(std::uint64_t resuming) {
  __transaction_atomic {
    ++number;
    add_action(resuming);
  }
}

TEST(RefusedCalls, CommitActionsHaveOneMoment) {
  EXPECT_DEATH(adds_an_action(7), "_ITM_addUserCommitAction\\(\\) of transaction 7");
}

TEST(RefusedCalls, TheProgramsOwnError) {
  EXPECT_DEATH(itm_error(nullptr, 3), "the program called _ITM_error\\(\\) with code 3");
}

void adds_one() {
  __transaction_atomic { ++number; }
}

// Another algorithm for the process of a death test; here one is chosen already.
class WithAlgorithm {
 public:
  explicit WithAlgorithm(const char* name) : before_(std::getenv(kVariable) != nullptr ? std::getenv(kVariable) : "") {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ::setenv(kVariable, name, 1);
  }
  WithAlgorithm(const WithAlgorithm&) = delete;
  WithAlgorithm& operator=(const WithAlgorithm&) = delete;
  ~WithAlgorithm() { ::setenv(kVariable, before_.c_str(), 1); }

 private:
  static constexpr const char* kVariable = "LOAM_ITM_ALGORITHM";
  std::string before_;
};

TEST(RefusedCalls, WhatIsNoAlgorithm) {
  for (const char* name : {"htm-lock", "cc-synch", "norce"}) {
    const WithAlgorithm named(name);
    EXPECT_DEATH(adds_one(),
                 std::string("LOAM_ITM_ALGORITHM=") + name +
                     ": no algorithm behind this interface has this name; choose of .*norec, .*hybrid-norec");
  }
}

// Threads one after the other may share the one place of this algorithm; two at a time end with a message.
void on_a_second_thread() {
  adds_one();
  loam::tests::on_threads(1, [](int) { adds_one(); });
}

TEST(RefusedCalls, AnAlgorithmForOneThread) {
  const WithAlgorithm named("sequential");
  EXPECT_DEATH(on_a_second_thread(), "a transaction of a second thread under the algorithm sequential");
}

}  // namespace
