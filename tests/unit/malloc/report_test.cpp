// What the heap tells of itself: glibc's functions and those of loam/malloc.h.
#include "tests/unit/malloc/blocks.hpp"
#include "tests/unit/support/json.hpp"

#include "include/loam/malloc.h"

#include <malloc.h>
#include <unistd.h>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace loam::tests {
namespace {

// What a function writes to a descriptor.
template <class Function>
std::string written(Function function) {
  std::FILE* const file = std::tmpfile();
  function(fileno(file));
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(pread(fileno(file), text.data(), text.size(), 0)));
  std::fclose(file);
  return text;
}

TEST(Report, MallocTrimTellsWhetherAnythingWentBack) {
  void* const block = malloc(opaque<std::size_t>(1 << 20));
  fill(block, 1 << 20, 1);
  free(block);
  const int first = malloc_trim(0);
  EXPECT_TRUE(first == 0 || first == 1);
  EXPECT_EQ(malloc_trim(0), 0);  // nothing has been freed since
}

TEST(Report, Mallinfo2CountsOurBlocks) {
  const auto before = mallinfo2();
  void* const block = malloc(opaque<std::size_t>(64) << 20);
  const auto during = mallinfo2();
  EXPECT_GE(during.hblkhd, before.hblkhd + (64 << 20));
  EXPECT_EQ(during.hblks, before.hblks + 1);
  EXPECT_GT(during.arena, 0u);  // never glibc's zeros
  EXPECT_EQ(during.arena, during.uordblks + during.fordblks);
  free(block);
  EXPECT_EQ(mallinfo2().hblks, before.hblks);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(Report, MallinfoIsMallinfo2InInts) {
  const auto narrow = mallinfo();
  const auto wide = mallinfo2();
  EXPECT_EQ(static_cast<std::size_t>(narrow.uordblks), wide.uordblks);
  void* const block = malloc(opaque<std::size_t>(3) << 30);  // never touched
  if (block != nullptr) {
    EXPECT_EQ(mallinfo().hblkhd, INT_MAX);
  }
  free(block);
}
#pragma GCC diagnostic pop

TEST(Report, MalloptAcceptsWhatExists) {
  for (const int parameter :
       {M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX, M_PERTURB, M_ARENA_TEST, M_ARENA_MAX})
    EXPECT_EQ(mallopt(parameter, 4), 1) << parameter;
  EXPECT_EQ(mallopt(M_MXFAST, 64), 1);
  EXPECT_EQ(mallopt(M_MXFAST, 0), 1);
  EXPECT_EQ(mallopt(M_MXFAST, 161), 0);
  EXPECT_EQ(mallopt(M_MXFAST, -1), 0);
  EXPECT_EQ(mallopt(1234, 1), 0);
}

TEST(Report, MallocInfoWritesOneElement) {
  std::FILE* const file = std::tmpfile();
  EXPECT_EQ(malloc_info(1, file), EINVAL);
  EXPECT_EQ(std::ftell(file), 0);
  EXPECT_EQ(malloc_info(0, file), 0);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  ASSERT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  EXPECT_TRUE(text.starts_with("<malloc version=\"1\">\n")) << text;
  EXPECT_TRUE(text.ends_with("</malloc>\n")) << text;
  EXPECT_NE(text.find("<system type=\"current\" size=\""), std::string::npos) << text;
  std::fclose(file);
}

TEST(Report, MallocInfoTellsThatTheStreamDoesNotTakeIt) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);
  EXPECT_EQ(malloc_info(0, full), -1);
  std::fclose(full);
}

TEST(Report, TheSummaryIsAligned) {
  const std::string text = written(loam_malloc_summary);
  EXPECT_TRUE(text.starts_with("loam malloc ")) << text;
  EXPECT_NE(text.find("in use by spans"), std::string::npos) << text;
  std::size_t lines = 0;
  for (std::size_t at = text.find('\n') + 1; at < text.size(); at = text.find('\n', at) + 1, ++lines)
    EXPECT_EQ(text.find_last_of("0123456789", text.find('\n', at)) - at, 45u) << text.substr(at);
  EXPECT_GE(lines, 10u);
}

TEST(Report, MallocStatsWritesTheSummaryToStandardError) {
  const std::string text = written([](int file) {
    const int kept = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    malloc_stats();
    dup2(kept, STDERR_FILENO);
    close(kept);
  });
  EXPECT_TRUE(text.starts_with("loam malloc ")) << text;
}

TEST(Report, JsonTellsItsLengthAndIsCutToTheBuffer) {
  char whole[4096], part[20];
  const std::size_t length = loam_malloc_json(whole, sizeof whole);
  ASSERT_LT(length, sizeof whole);
  EXPECT_EQ(std::strlen(whole), length);
  EXPECT_GT(loam_malloc_json(part, sizeof part), sizeof part);
  EXPECT_EQ(std::strlen(part), sizeof part - 1);
  EXPECT_EQ(std::strncmp(part, whole, sizeof part - 1), 0);
  EXPECT_GT(loam_malloc_json(nullptr, 0), 0u);
  const Json found = Json::parse(whole);
  EXPECT_EQ(found["allocator"].string(), "loam");
  EXPECT_EQ(found["pid"].number(), getpid());
  EXPECT_GE(found["committed_bytes"].number(), found["slab_bytes"].number());
  EXPECT_GE(found["heaps_in_use"].number(), 1);
}

}  // namespace
}  // namespace loam::tests
