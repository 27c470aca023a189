// Histories of small runs whose accesses are inline are opaque, as those of tests/model/opacity_test.cpp are whose
// accesses are C++. A test that includes this file has defined LOAM_TM_ALGORITHM.
#pragma once

#include "include/loam/tm.h"
#include "runtime/base/points.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/child.hpp"
#include "tests/harness/interpose.hpp"
#include "tests/harness/watchdog.hpp"
#include "tests/model/history_run.hpp"
#include "tests/model/opacity.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace loam::tests {

// What HistoryRuns needs of a driver. An inline access has no test point of its own: there is one around each.
struct InlinedDriver {
  class Tx {
   public:
    explicit Tx(loam_tx* tx) : tx_(tx) {}
    std::uint64_t read(const std::uint64_t& field) const {
      LOAM_POINT("tm.reading");
      const std::uint64_t value = loam_tx_read_u64(tx_, &field);
      LOAM_POINT("tm.reading");
      return value;
    }
    void write(std::uint64_t& field, std::uint64_t value) const {
      LOAM_POINT("tm.reading");
      loam_tx_write_u64(tx_, &field, value);
      LOAM_POINT("tm.locked");
    }

   private:
    loam_tx* tx_;
  };

  template <class F>
  static void read_only(F&& f) {
    run(f, LOAM_READ_ONLY);
  }
  template <class F>
  static void update(F&& f) {
    run(f, 0);
  }

 private:
  template <class F>
  static void run(F& f, unsigned flags) {
    atomically(
        [&](loam_tx* handle) {
          Tx tx(handle);
          f(tx);
        },
        flags);
  }
};

// Called a death test, so that it runs before tests with transactions: it configures children of this process.
TEST(CInlinedHistoriesDeathTest, SmallRunsAreOpaque) {
  may_take(60);
  LOAM_NEEDS_POINTS();
  for (const char* mapping : {"table", "shadow"})
    in_child([&] {
      loam_config config;
      loam_config_default(&config);
      config.mapping = mapping;
      config.shift = 4;
      config.records_log2 = 10;  // few: stripes alias
      config.privatization = "none";
      config.serialise_after = 0;
      ASSERT_EQ(loam_configure(&config), LOAM_OK) << loam_error();
      tm::touch_records();  // the map says where the variables lie, also where the algorithm has no records
      HistoryRuns<InlinedDriver> runs;
      std::uint64_t conflicts = 0, aborts = 0;
      const std::uint64_t count = kInstrumented ? 500 : 2000;
      for (std::uint64_t index = 0; index < count; ++index) {
        const RunShape shape(2, index);
        const History history = runs.run(shape);
        conflicts += has_overlapping_conflict(history, shape.variables);
        aborts += has_abort(history);
        if (history.size() > 1000) continue;  // the checker is quadratic
        const auto violation = opacity_violation(history);
        ASSERT_FALSE(violation) << "run " << index << " over " << mapping << " is not opaque: " << *violation << "\n"
                                << to_string(history);
      }
      // A checked history that holds no conflict checks little.
      EXPECT_GE(conflicts * 100, count * 30);
      EXPECT_GE(aborts * 100, count * 5);
    });
}

}  // namespace loam::tests
