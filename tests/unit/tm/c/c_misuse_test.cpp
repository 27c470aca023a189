// What the C interface refuses: wrong configurations, begin and commit that do not match, use outside of transactions,
// another transactional memory.
#include "include/loam/tm.h"
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/child.hpp"

#include <gtest/gtest.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <thread>

namespace loam::tm {
namespace {

using tests::atomically;
using tests::closed;

alignas(64) std::uint64_t x = 0;
alignas(64) std::uint64_t y = 0;

std::string failing_configuration(void (*change)(loam_config&), int code) {
  loam_config config;
  loam_config_default(&config);
  change(config);
  EXPECT_EQ(loam_configure(&config), code);
  return loam_error();
}

TEST(CApiErrors, ConfigureNamesSubjectValueAndWhatIsAllowed) {
  tests::in_child([] {
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.algorithm = "etl-bw"; }, LOAM_UNKNOWN_NAME).substr(0, 65),
              "algorithm=etl-bw: there is no such one; did you mean etl-wb? Ther");
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.mapping = "quite different"; }, LOAM_UNKNOWN_NAME)
                  .find("mapping=quite different: there is no such one; there are table, shadow"),
              0u);
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.manager = nullptr; }, LOAM_UNKNOWN_NAME).find("manager="),
              0u);
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.privatization = "comit"; }, LOAM_UNKNOWN_NAME)
                  .find("privatization=comit: there is no such one; did you mean commit?"),
              0u);
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.shift = 2; }, LOAM_OUT_OF_RANGE),
              "shift=2: must be 3 to 12");
    EXPECT_EQ(failing_configuration([](loam_config& c) { c.records_log2 = 27; }, LOAM_OUT_OF_RANGE),
              "records_log2=27: must be 10 to 26");
    EXPECT_EQ(
        failing_configuration([](loam_config& c) { c.algorithm = "etl-wb", c.mapping = "hash"; }, LOAM_OUT_OF_RANGE),
        "mapping=hash: etl-wb finds records by shift and mask; etl-wb-hash knows it");
    EXPECT_EQ(failing_configuration([](loam_config&) {}, LOAM_OK), "");
    atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); });
    EXPECT_EQ(failing_configuration([](loam_config&) {}, LOAM_TOO_LATE),
              "loam_configure() after the first transaction of the process");
    // Nothing was changed by the refused ones.
    EXPECT_STREQ(loam_algorithm_in_use(), DefaultAlgorithm::kDescription.name.data());
  });
}

TEST(CApiErrors, NamesCanBeListed) {
  for (unsigned i = 0; i < Algorithms::kCount; ++i) EXPECT_EQ(loam_algorithm_name(i), Algorithms::kNames[i]);
  EXPECT_EQ(loam_algorithm_name(Algorithms::kCount), nullptr);
  EXPECT_EQ(loam_abort_cause_name(0), name_of(AbortCause::same_word));
  EXPECT_EQ(loam_abort_cause_name(kAbortCauses), nullptr);
  // The library and the header that it came with say the same.
  EXPECT_EQ(loam_version(), std::to_string(LOAM_VERSION_MAJOR) + "." + std::to_string(LOAM_VERSION_MINOR) + "." +
                                std::to_string(LOAM_VERSION_PATCH));
}

struct CApiDeathTest : testing::Test {};

[[gnu::noinline]] loam_tx* begin_and_return() {
  [[maybe_unused]] volatile char below[512] = {};
  loam_tx_frame frame;
  return loam_tx_begin(&frame, 0) != 0 ? frame.tx : nullptr;
}

TEST_F(CApiDeathTest, AccessesOutsideOfTransactionsNameTheCall) {
  // A transaction runs here: not in the process of the other tests.
  tests::in_child([] {
    loam_tx* stale = nullptr;
    EXPECT_DEATH(loam_tx_retry(reinterpret_cast<loam_tx*>(&Descriptor::current_or_detached())),
                 "loam_tx_retry\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_read_u64(reinterpret_cast<loam_tx*>(&Descriptor::current_or_detached()), &x),
                 "loam_tx_read_...\\(\\) outside of transactions");
    atomically([&](loam_tx* tx) { stale = tx; });
    EXPECT_EQ(loam_tx_current(), nullptr);
    EXPECT_DEATH(loam_tx_read_u8(stale, &x), "loam_tx_read_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_write_bytes(stale, &x, &y, 8), "loam_tx_write_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_malloc(stale, 8), "loam_tx_malloc\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_free(stale, nullptr), "loam_tx_free\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_on_commit(stale, nullptr, nullptr), "loam_tx_on_...\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_cancel(stale), "loam_tx_cancel\\(\\) outside of transactions");
    EXPECT_DEATH(closed(stale, [](loam_tx*) {}), "loam_tx_closed\\(\\) outside of transactions");
    EXPECT_DEATH(loam_tx_become_irrevocable(stale), "loam_tx_become_irrevocable\\(\\) outside of transactions");
  });
}

TEST_F(CApiDeathTest, UnbalancedBeginAndCommit) {
  EXPECT_DEATH(
      {
        loam_tx_frame frame;
        std::memset(&frame, 0, sizeof frame);
        loam_tx_commit(&frame);
      },
      "loam_tx_commit\\(\\) outside of transactions");
  EXPECT_DEATH(
      {
        loam_tx_frame frame;
        loam_tx_frame other;
        std::memset(&other, 0, sizeof other);
        loam_tx_begin(&frame, 0);
        loam_tx_commit(&other);
      },
      "frame that was not begun");
  EXPECT_DEATH(
      {
        loam_tx_frame frame;
        loam_tx_begin(&frame, 0);
        loam_tx_begin(&frame, 0);
      },
      "loam_tx_begin\\(\\) twice with one frame");
  EXPECT_DEATH(
      {
        loam_tx_frame outer;
        loam_tx_frame inner;
        loam_tx_begin(&outer, 0);
        loam_tx_begin(&inner, 0);
        loam_tx_commit(&outer);
      },
      "loam_tx_commit\\(\\) while 1 loam_tx_begin\\(\\) inside");
  EXPECT_DEATH(
      {
        loam_tx_frame outer;
        loam_tx_frame inner;
        loam_tx_begin(&outer, 0);
        loam_tx_begin(&inner, 0);
        loam_tx_commit(&inner);
        loam_tx_commit(&inner);
      },
      "is committed already");
  EXPECT_DEATH(atomically([](loam_tx*) {
                 static loam_tx_frame frame;
                 loam_tx_begin(&frame, 0);
               }),
               "returned between loam_tx_begin\\(\\) and loam_tx_commit\\(\\)");
  EXPECT_DEATH(
      {
        loam_tx_frame outer;
        loam_tx_begin(&outer, 0);
        closed(outer.tx, [&](loam_tx*) { loam_tx_commit(&outer); });
      },
      "in a part of it");
  EXPECT_DEATH(std::thread([] { begin_and_return(); }).join(), "a thread ended");
}

TEST_F(CApiDeathTest, TheFunctionThatBeganHasReturned) {
  EXPECT_DEATH(
      {
        begin_and_return();
        loam_tx_frame frame;
        loam_tx_begin(&frame, 0);
      },
      "returned without loam_tx_commit\\(\\), or was left by longjmp");
  EXPECT_DEATH(
      {
        begin_and_return();
        atomically([](loam_tx*) {});
      },
      "loam_atomically\\(\\) by a function outside of the transaction");
}

TEST_F(CApiDeathTest, ALongjmpOutOfABodyIsFoundByTheNextTransaction) {
  EXPECT_DEATH(
      {
        // Both calls by one function: a deeper one is not told from one inside the body.
        static std::jmp_buf out;
        if (setjmp(out) == 0) loam_atomically([](loam_tx*, void*) { std::longjmp(out, 1); }, nullptr, 0);
        loam_atomically([](loam_tx*, void*) {}, nullptr, 0);
      },
      "longjmp");
}

TEST_F(CApiDeathTest, FlagsThatDoNotExist) {
  EXPECT_DEATH(atomically([](loam_tx*) {}, 64), "flags=64");
}

TEST_F(CApiDeathTest, CancelAndRetryOfWhatCannotBeTakenBack) {
  EXPECT_DEATH(atomically([](loam_tx* tx) { loam_tx_cancel(tx); }, LOAM_IRREVOCABLE), "irrevocable");
  EXPECT_DEATH(atomically([](loam_tx* tx) { loam_tx_retry(tx); }, LOAM_IRREVOCABLE), "irrevocable");
}

#ifdef LOAM_CHECKED
TEST_F(CApiDeathTest, AValueThatIsNotAligned) {
  EXPECT_DEATH(atomically([](loam_tx* tx) { loam_tx_read_u32(tx, reinterpret_cast<char*>(&x) + 2); }),
               "must be aligned");
}
#endif

// ---- another transactional memory

// What libitm answers inside a transaction of its own.
int in_foreign_transaction = 0;

TEST_F(CApiDeathTest, InsideATransactionOfLibitm) {
  in_foreign_transaction = 1;
  EXPECT_DEATH(atomically([](loam_tx*) {}), "inside one of libitm");
  EXPECT_DEATH(begin_and_return(), "inside one of libitm");
  in_foreign_transaction = 0;
}

// The default algorithm under another name.
struct Other : DefaultAlgorithm {
  static constexpr AlgorithmDescription kDescription{.name = "other", .summary = "", .paper = "", .guarantees = ""};
};

TEST_F(CApiDeathTest, InsideATransactionOfAnotherAlgorithm) {
  EXPECT_DEATH(Driver<Other>::update([](auto&) { atomically([](loam_tx*) {}); }), "algorithm other");
  EXPECT_DEATH(atomically([](loam_tx*) { Driver<Other>::update([](auto&) {}); }), "a transaction of algorithm other");
  EXPECT_DEATH(atomically([](loam_tx*) { Driver<Other>::read_only([](auto&) {}); }),
               "a transaction of algorithm other");
}

}  // namespace
}  // namespace loam::tm

extern "C" int _ITM_inTransaction() noexcept { return loam::tm::in_foreign_transaction; }
