// Settings from the environment: what is read, what is named, and that it all is known before anything else runs.
#include "runtime/malloc/settings.hpp"

#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/process.hpp"

#include <cstdlib>
#include <string>

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
  const auto found = read({"PATH=/bin", "LOAM_CHECKED=1", "LOAM_MALLOC=1"});
  EXPECT_FALSE(found.hardened);
  EXPECT_FALSE(found.statistics_at_exit);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, EachIsRead) {
  EXPECT_TRUE(read({"A=1", "LOAM_MALLOC_HARDENED=1"}).hardened);
  EXPECT_TRUE(read({"LOAM_MALLOC_STATS=1", "A=1"}).statistics_at_exit);
  EXPECT_FALSE(read({"LOAM_MALLOC_HARDENED=0", "LOAM_MALLOC_HARDENED=1"}).hardened);
  EXPECT_EQ(complaints, "");
}

TEST(Settings, AnUnknownNameIsNamedWithTheNearest) {
  EXPECT_FALSE(read({"LOAM_MALLOC_HARDEND=1"}).hardened);
  EXPECT_EQ(complaints,
            "loam malloc: LOAM_MALLOC_HARDEND: there is no such setting; did you mean LOAM_MALLOC_HARDENED? Ignored\n");
  read({"LOAM_MALLOC_COLOUR=red"});
  EXPECT_EQ(complaints, "loam malloc: LOAM_MALLOC_COLOUR: there is no such setting; ignored\n");
}

TEST(Settings, AWrongValueIsNamed) {
  for (const char* variable : {"LOAM_MALLOC_STATS=2", "LOAM_MALLOC_STATS=", "LOAM_MALLOC_STATS=yes"}) {
    EXPECT_FALSE(read({variable}).statistics_at_exit);
    EXPECT_EQ(complaints, std::string("loam malloc: ") + variable + ": must be 0 or 1; ignored\n");
  }
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
