// Settings from the environment: what is read, what is named, and that it all is known before anything else runs.
#include "runtime/malloc/settings.hpp"

#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace loam::tests {
namespace {

std::string complaints;
void note(const char* line, std::size_t length) { complaints.append(line, length); }

malloc::Settings read(std::initializer_list<const char*> variables) {
  std::vector<char*> list;
  for (const char* variable : variables) list.push_back(const_cast<char*>(variable));
  list.push_back(nullptr);
  complaints.clear();
  return malloc::read_settings(list.data(), note);
}

TEST(Settings, NothingIsSetUnlessAskedFor) {
  const auto found = read({"PATH=/bin", "LOAM_CHECKED=1", "LOAM_MALLOCS=1"});
  EXPECT_FALSE(found.hardened);
  EXPECT_FALSE(found.statistics_at_exit);
  EXPECT_FALSE(found.background);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, EachIsRead) {
  EXPECT_TRUE(read({"A=1", "LOAM_MALLOC_HARDENED=1"}).hardened);
  EXPECT_TRUE(read({"LOAM_MALLOC_STATS=1", "A=1"}).statistics_at_exit);
  EXPECT_TRUE(read({"LOAM_MALLOC_BACKGROUND=1"}).background);
  EXPECT_FALSE(read({"LOAM_MALLOC_HARDENED=0", "LOAM_MALLOC_HARDENED=1"}).hardened);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, AGapOfSamplesIsANumber) {
  EXPECT_EQ(read({"A=1"}).guard_ms, 0u);
  EXPECT_EQ(read({"LOAM_MALLOC_GUARD_MS=50", "LOAM_MALLOC_GUARD_MS=7"}).guard_ms, 50u);
  EXPECT_EQ(read({"LOAM_MALLOC_GUARD_MS=3600000"}).guard_ms, 3'600'000u);
  EXPECT_EQ(complaints, "");
  for (const char* variable : {"LOAM_MALLOC_GUARD_MS=", "LOAM_MALLOC_GUARD_MS=-1", "LOAM_MALLOC_GUARD_MS=5x",
                               "LOAM_MALLOC_GUARD_MS=3600001", "LOAM_MALLOC_GUARD_MS=99999999999"}) {
    EXPECT_EQ(read({variable}).guard_ms, 0u);
    EXPECT_EQ(complaints,
              std::string("loam malloc: ") + variable + ": must be a whole number from 0 to 3600000; ignored\n");
  }
}

TEST(Settings, AFileOfSitesIsNamed) {
  EXPECT_FALSE(read({"A=1"}).apart);
  const auto found = read({"LOAM_MALLOC_APART=/tmp/a b", "LOAM_MALLOC_APART=/tmp/c"});
  EXPECT_TRUE(found.apart);
  EXPECT_STREQ(found.apart_file, "/tmp/a b");
  EXPECT_EQ(complaints, "");
  EXPECT_FALSE(read({"LOAM_MALLOC_APART="}).apart);
  EXPECT_EQ(complaints, "loam malloc: LOAM_MALLOC_APART=: must name a file; ignored\n");
  for (const char* beside : {"LOAM_MALLOC_HARDENED=1", "LOAM_MALLOC_GUARD_MS=5"}) {
    EXPECT_FALSE(read({beside, "LOAM_MALLOC_APART=/tmp/c"}).apart) << beside;
    EXPECT_EQ(complaints,
              "loam malloc: LOAM_MALLOC_APART: has no effect beside LOAM_MALLOC_HARDENED or LOAM_MALLOC_GUARD_MS; "
              "ignored\n");
  }
  EXPECT_TRUE(read({"LOAM_MALLOC_HARDENED=0", "LOAM_MALLOC_APART=/tmp/c"}).apart);
}

TEST(Settings, AnUnknownNameIsNamedWithTheNearest) {
  EXPECT_FALSE(read({"LOAM_MALLOC_HARDEND=1"}).hardened);
  EXPECT_EQ(complaints,
            "loam malloc: LOAM_MALLOC_HARDEND: there is no such setting; did you mean LOAM_MALLOC_HARDENED? Ignored\n");
  read({"LOAM_MALLOC=hardened"});
  EXPECT_EQ(complaints,
            "loam malloc: LOAM_MALLOC: there is no such setting; ignored. Settings have longer names, as "
            "LOAM_MALLOC_HARDENED\n");
  read({"LOAM_MALLOC_COLOUR=red"});
  EXPECT_EQ(complaints, "loam malloc: LOAM_MALLOC_COLOUR: there is no such setting; ignored\n");
}

TEST(Settings, AWrongValueIsNamed) {
  for (const char* variable : {"LOAM_MALLOC_STATS=2", "LOAM_MALLOC_STATS=", "LOAM_MALLOC_STATS=yes"}) {
    EXPECT_FALSE(read({variable}).statistics_at_exit);
    EXPECT_EQ(complaints, std::string("loam malloc: ") + variable + ": must be 0 or 1; ignored\n");
  }
}

TEST(Settings, OneAndZeroAreTheOnlyFlags) {
  for (const char* name : {"BACKGROUND", "HARDENED", "STATS"}) {
    const std::string set = std::string("LOAM_MALLOC_") + name + "=";
    for (const char* value : {"", "2", "01", "1 ", "11", "00", "-1", "true"}) {
      const std::string variable = set + value;
      const auto found = read({variable.c_str()});
      EXPECT_FALSE(found.background || found.hardened || found.statistics_at_exit) << variable;
      EXPECT_EQ(complaints, "loam malloc: " + variable + ": must be 0 or 1; ignored\n");
    }
    const std::string on = set + "1", off = set + "0", wrong = set + "x";
    const auto is_on = [&](std::initializer_list<const char*> variables) {
      const auto found = read(variables);
      return found.background + found.hardened + found.statistics_at_exit;
    };
    EXPECT_EQ(is_on({on.c_str()}), 1);
    EXPECT_EQ(is_on({off.c_str(), on.c_str()}), 0) << "the first one counts";
    EXPECT_EQ(is_on({on.c_str(), off.c_str()}), 1);
    EXPECT_EQ(complaints, "");
    EXPECT_EQ(is_on({wrong.c_str(), on.c_str()}), 1) << "a wrong one is none";
  }
}

TEST(Settings, WhatIsNoSettingOfOursIsPassedOver) {
  for (const char* variable : {"LOAM_MALLOC_STATS", "LOAM_MALLOC", "XLOAM_MALLOC_STATS=1", "loam_malloc_stats=1"}) {
    EXPECT_FALSE(read({variable}).statistics_at_exit) << variable;
    EXPECT_EQ(complaints, "") << variable;
  }
  // The name ends at the first equals sign, and is all of it.
  for (const char* name : {"", "S", "STATSS", "STAT"}) {
    EXPECT_FALSE(read({(std::string("LOAM_MALLOC_") + name + "=1").c_str()}).statistics_at_exit) << name;
    EXPECT_TRUE(complaints.starts_with(std::string("loam malloc: LOAM_MALLOC_") + name + ": there is no such setting"))
        << complaints;
  }
  read({"LOAM_MALLOC_STATS=1=1"});
  EXPECT_EQ(complaints, "loam malloc: LOAM_MALLOC_STATS=1=1: must be 0 or 1; ignored\n");
  read({"LOAM_MALLOC=", "LOAM_MALLOC_X=1", "LOAM_MALLOC_STATS=3", "LOAM_MALLOC_GUARD_MS=x", "A=1"});
  EXPECT_EQ(std::count(complaints.begin(), complaints.end(), '\n'), 4) << "each is named";
  // Nobody listens: nothing is said, and the rest is read all the same.
  const char* const variables[] = {"LOAM_MALLOC_X=1", "LOAM_MALLOC_HARDENED=1", nullptr};
  EXPECT_TRUE(malloc::read_settings(const_cast<char* const*>(variables), nullptr).hardened);
}

TEST(Settings, EveryNumberOfMillisecondsIsKept) {
  for (const char* value : {"0", "1", "3599999", "3600000"}) {
    const std::string variable = std::string("LOAM_MALLOC_GUARD_MS=") + value;
    EXPECT_EQ(std::to_string(read({variable.c_str()}).guard_ms), value);
    EXPECT_EQ(complaints, "");
  }
  for (const char* value : {"+1", " 1", "1 ", "0x1", "1.5", "4294967296"}) {
    const std::string variable = std::string("LOAM_MALLOC_GUARD_MS=") + value;
    EXPECT_EQ(read({variable.c_str()}).guard_ms, 0u) << value;
    EXPECT_NE(complaints, "") << value;
  }
}

// The word in which threads find what was read, with all of its parts alone and together.
TEST(Settings, TheWordHoldsEachPartApart) {
  const std::uint64_t before = malloc::settings_word();
  EXPECT_NE(before, 0u);
  for (unsigned parts = 0; parts < 8; ++parts)
    for (const std::uint32_t guard_ms : {0u, 1u, 3'600'000u}) {
      const bool statistics = (parts & 1) != 0, hardened = (parts & 2) != 0, background = (parts & 4) != 0;
      malloc::read_once = malloc::kRead | (statistics ? malloc::kStatistics : 0) | (hardened ? malloc::kHardened : 0) |
                          (background ? malloc::kBackground : 0) | std::uint64_t{guard_ms} << malloc::kGuardShift;
      const auto found = malloc::settings();
      EXPECT_EQ(found.statistics_at_exit, statistics);
      EXPECT_EQ(found.hardened, hardened);
      EXPECT_EQ(found.background, background);
      EXPECT_EQ(found.guard_ms, guard_ms);
      EXPECT_EQ(malloc::hardened(), hardened);
      EXPECT_EQ(malloc::sample_gap_ns(), std::uint64_t{guard_ms} * 1'000'000);
    }
  // Not read yet: who asks first reads the environment, of this process.
  for (const char* variables :
       {"LOAM_MALLOC_GUARD_MS=7", "LOAM_MALLOC_STATS=1", "LOAM_MALLOC_HARDENED=1", "LOAM_MALLOC_BACKGROUND=1"}) {
    char* const list[] = {const_cast<char*>(variables), nullptr};
    char** const environment = std::exchange(environ, const_cast<char**>(list));
    malloc::read_once = 0;
    const std::uint64_t word = malloc::settings_word();
    malloc::read_once = 0;
    const auto found = malloc::settings();
    environ = environment;
    const std::string_view set = variables;
    EXPECT_EQ(word, malloc::read_once);
    EXPECT_EQ(found.guard_ms, set.find("GUARD") != set.npos ? 7u : 0u) << set;
    EXPECT_EQ(found.statistics_at_exit, set.find("STATS") != set.npos) << set;
    EXPECT_EQ(found.hardened, set.find("HARDENED") != set.npos) << set;
    EXPECT_EQ(found.background, set.find("BACKGROUND") != set.npos) << set;
  }
  malloc::read_once = before;
}

// ---- before libc knows the environment ----

malloc::Settings early;
bool environment_was_known = true;

void ask_early() {
  environment_was_known = environ != nullptr;
  early = malloc::settings();
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const preinit)() = ask_early;

TEST(Settings, AreKnownBeforeAllConstructors) {
  if (std::getenv("LOAM_MALLOC_HARDENED") == nullptr) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    const Finished done =
        run("LOAM_MALLOC_HARDENED=1 " + self + " --gtest_filter=Settings.AreKnownBeforeAllConstructors");
    EXPECT_EQ(done.status, 0) << done.out << done.err;
    return;
  }
  EXPECT_FALSE(environment_was_known);
  EXPECT_TRUE(early.hardened);
  EXPECT_FALSE(early.statistics_at_exit);
}

// ---- in a program that runs with more rights than its user ----

// A copy of this program that is its owner's, started by somebody else: takes root, and a file system that allows it.
TEST(Settings, AProgramWithMoreRightsThanItsUserTakesNone) {
  if (getauxval(AT_SECURE) != 0) {  // this is it
    EXPECT_FALSE(early.hardened);
    EXPECT_FALSE(early.statistics_at_exit);
    EXPECT_FALSE(early.background);
    EXPECT_FALSE(malloc::hardened());
    malloc::complain_about_settings();
    return;
  }
  if (geteuid() != 0) GTEST_SKIP() << "takes root, to make a set-user-id program";
  const TemporaryFolder folder;
  const auto copy = folder.path() / "program";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  const std::string command =
      "LOAM_MALLOC_STATS=1 LOAM_MALLOC_HARDENED=1 LOAM_MALLOC_BACKGROUND=1 LOAM_MALLOC_STAT=1 setpriv --reuid=65534 "
      "--regid=65534 --clear-groups " +
      copy.string() + " --gtest_filter=Settings.AProgramWithMoreRightsThanItsUserTakesNone";
  const Finished done = run(command);
  if (done.out.find("takes root") != std::string::npos) GTEST_SKIP() << "this system starts no set-user-id programs";
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("[  PASSED  ] 1 test"), std::string::npos) << done.out;
  EXPECT_EQ(done.err, "") << "no summary, and no setting is named";
}

TEST(Settings, AProgramThatIsLinkedWithTheLibraryIsToldTheSame) {
  const std::string nothing = std::filesystem::read_symlink("/proc/self/exe").string() + " --gtest_filter=-*";
  EXPECT_EQ(run(nothing).err, "");
  const Finished summary = run("LOAM_MALLOC_STATS=1 " + nothing);
  EXPECT_EQ(summary.status, 0);
  EXPECT_TRUE(summary.err.starts_with("loam malloc ")) << summary.err;
  EXPECT_EQ(summary.err.find("hardened"), std::string::npos) << summary.err;
  EXPECT_EQ(summary.err.find("loam malloc", 1), std::string::npos) << "once: " << summary.err;
  const std::string hardened = run("LOAM_MALLOC_STATS=1 LOAM_MALLOC_HARDENED=1 " + nothing).err;
  EXPECT_TRUE(hardened.substr(0, hardened.find('\n')).ends_with(", hardened")) << hardened;
  EXPECT_EQ(run("LOAM_MALLOC_STAT=1 " + nothing).err,
            "loam malloc: LOAM_MALLOC_STAT: there is no such setting; did you mean LOAM_MALLOC_STATS? Ignored\n");
}

// ---- in a program that was not linked with the library ----

std::string preloaded(const std::string& variables, const std::string& command) {
  return variables + " LD_PRELOAD=" + (build_folder() / kLibrary).string() + " " + command;
}

TEST(Settings, AProgramWithoutACppLibraryRunsAndSaysNothing) {
  const Finished done = run(preloaded("", "/bin/sh -c 'echo good'"));
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.out, "good\n");
  EXPECT_EQ(done.err, "");
}

TEST(Settings, TheSummaryIsWrittenAtExit) {
  const Finished done = run(preloaded("LOAM_MALLOC_STATS=1", "/bin/true"));
  EXPECT_EQ(done.status, 0);
  EXPECT_TRUE(done.err.starts_with("loam malloc ")) << done.err;
  EXPECT_NE(done.err.find("in use by spans"), std::string::npos) << done.err;
}

TEST(Settings, TheSummaryIsWrittenAlsoWhereTheProgramClosesStandardError) {
  const Finished done = run(preloaded("LOAM_MALLOC_STATS=1", "sort /dev/null"));
  EXPECT_EQ(done.status, 0);
  EXPECT_TRUE(done.err.starts_with("loam malloc ")) << done.err;
}

TEST(Settings, AnUnknownSettingIsNamedOnce) {
  const Finished done = run(preloaded("LOAM_MALLOC_STAT=1", "/bin/true"));
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err,
            "loam malloc: LOAM_MALLOC_STAT: there is no such setting; did you mean LOAM_MALLOC_STATS? Ignored\n");
}

TEST(Settings, HardenedArrives) {
  const Finished done = run(preloaded("LOAM_MALLOC_STATS=1 LOAM_MALLOC_HARDENED=1", "/bin/true"));
  EXPECT_NE(done.err.substr(0, done.err.find('\n')).find(", hardened"), std::string::npos) << done.err;
}

TEST(Settings, AnEmptyEnvironmentIsFine) {
  const Finished done = run("env -i LD_PRELOAD=" + (build_folder() / kLibrary).string() + " /bin/true");
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "");
}

}  // namespace
}  // namespace loam::tests
