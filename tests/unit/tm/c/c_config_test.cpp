// LOAM_TM: the configuration of the C interface by environment.
#include "include/loam/tm.h"
#include "runtime/tm/c/config.hpp"
#include "runtime/tm/tm.hpp"
#include "tests/harness/c_bodies.hpp"
#include "tests/harness/tm_variants.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace loam::tm {
namespace {

std::string complaints;

loam_config read(std::string_view text) {
  complaints.clear();
  loam_config config = open::default_config();
  open::read_settings(config, text, [](std::string_view sentence) { complaints.append(sentence).append("\n"); });
  return config;
}

TEST(CConfig, EachKeyIsRead) {
  const auto config = read(
      "algorithm=tl2,mapping=shadow,manager=karma,privatization=none,shift=7,records_log2=12,serialise_after=3,"
      "adaptive=1");
  EXPECT_EQ(complaints, "");
  EXPECT_STREQ(config.algorithm, "tl2");
  EXPECT_STREQ(config.mapping, "shadow");
  EXPECT_STREQ(config.manager, "karma");
  EXPECT_STREQ(config.privatization, "none");
  EXPECT_EQ(config.shift, 7u);
  EXPECT_EQ(config.records_log2, 12u);
  EXPECT_EQ(config.serialise_after, 3u);
  EXPECT_EQ(config.adaptive, 1);
}

TEST(CConfig, WhatIsWrongIsNamedAndTheRestHolds) {
  EXPECT_STREQ(read("algoritm=tl2,mapping=shadow").mapping, "shadow");
  EXPECT_TRUE(
      complaints.starts_with("algoritm: there is no such setting; did you mean algorithm? There are algorithm, "))
      << complaints;
  EXPECT_STREQ(read("algorithm=tl3,shift=6").algorithm, DefaultAlgorithm::kDescription.name.data());
  EXPECT_NE(complaints.find("algorithm=tl3: there is no such one; did you mean tl2?"), std::string::npos) << complaints;
  EXPECT_EQ(read("shift=2,records_log2=12").records_log2, 12u);
  EXPECT_EQ(complaints, "shift=2: must be 3 to 12\n");
  EXPECT_EQ(read("shift=7x").shift, 5u);
  EXPECT_EQ(complaints, "shift=7x: must be a whole number\n");
  read("shadow");
  EXPECT_EQ(complaints, "shadow: must have the form key=value\n");
  read(",,");
  EXPECT_EQ(complaints, "");
}

TEST(CConfig, TheOrderOfKeysDoesNotMatterAndTheWholeMustFit) {
  EXPECT_STREQ(read("mapping=hash,algorithm=etl-wb-hash").mapping, "hash");
  EXPECT_EQ(complaints, "");
  EXPECT_STREQ(read("mapping=hash,algorithm=etl-wb,shift=7").mapping, "table");
  EXPECT_EQ(complaints, "mapping=hash: etl-wb finds records by shift and mask; etl-wb-hash knows it\n");
}

void with_environment(const char* value, void (*body)()) {
  tests::in_child([&] {
    setenv("LOAM_TM", value, 1);
    body();
  });
}

TEST(CConfig, TheEnvironmentHoldsWhereTheProgramConfiguresNothing) {
  with_environment("algorithm=tl2", [] {
    static std::uint64_t x = 0;
    tests::atomically([](loam_tx* tx) { loam_tx_write_u64(tx, &x, 1); });
    EXPECT_STREQ(loam_algorithm_in_use(), "tl2");
  });
}

TEST(CConfig, TheProgramsOwnChoicesAreOverThoseOfTheEnvironment) {
  with_environment("algorithm=swisstm,privatization=none", [] {
    loam_config config;
    loam_config_default(&config);
    EXPECT_STREQ(config.algorithm, "swisstm");
    config.algorithm = "tl2";
    ASSERT_EQ(loam_configure(&config), LOAM_OK);
    EXPECT_STREQ(loam_algorithm_in_use(), "tl2");
    EXPECT_STREQ(config.privatization, "none");
  });
}

TEST(CConfigDeathTest, WhatIsWrongInTheEnvironmentIsNamedOnStandardError) {
  EXPECT_EXIT(
      {
        setenv("LOAM_TM", "colour=red", 1);
        tests::atomically([](loam_tx*) {});
        std::_Exit(loam_algorithm_in_use() == DefaultAlgorithm::kDescription.name ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "loam tm: LOAM_TM: colour: there is no such setting; there are algorithm, .*; ignored");
}

}  // namespace
}  // namespace loam::tm
