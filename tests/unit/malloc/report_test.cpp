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
  for (const int parameter : {M_NLBLKS, M_GRAIN, M_KEEP, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX,
                              M_CHECK_ACTION, M_PERTURB, M_ARENA_TEST, M_ARENA_MAX})
    EXPECT_EQ(mallopt(parameter, 4), 1) << parameter;
  EXPECT_EQ(mallopt(M_MXFAST, 64), 1);
  EXPECT_EQ(mallopt(M_MXFAST, 0), 1);
  EXPECT_EQ(mallopt(M_MXFAST, 160), 1);
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

TEST(Report, MallocTrimGivesBackWhatMallinfoSaysItCan) {
  void* blocks[64];
  for (void*& block : blocks) {
    block = malloc(opaque<std::size_t>(100'000));
    fill(block, 100'000, 1);
  }
  for (void* block : blocks) free(block);
  ASSERT_GT(mallinfo2().keepcost, 0u);
  EXPECT_EQ(mallinfo2().keepcost, mallinfo2().fordblks);
  EXPECT_EQ(malloc_trim(0), 1);
  EXPECT_EQ(mallinfo2().keepcost, 0u);
  EXPECT_EQ(malloc_trim(0), 0);
}

TEST(Report, MalloptKnowsEveryParameterOfGlibcAndTheLimitOfOne) {
  for (const int parameter : {M_NLBLKS, M_GRAIN, M_KEEP, M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_MMAP_MAX,
                              M_CHECK_ACTION, M_PERTURB, M_ARENA_TEST, M_ARENA_MAX})
    for (const int value : {INT_MIN, -1, 0, 1, INT_MAX}) EXPECT_EQ(mallopt(parameter, value), 1) << parameter;
  for (const int value : {0, 1, 160}) EXPECT_EQ(mallopt(M_MXFAST, value), 1) << value;
  for (const int value : {INT_MIN, -1, 161, INT_MAX}) EXPECT_EQ(mallopt(M_MXFAST, value), 0) << value;
  for (const int parameter : {INT_MIN, 0, 5, -9, INT_MAX}) EXPECT_EQ(mallopt(parameter, 1), 0) << parameter;
}

// Each number of the JSON object, of mallinfo2() and of malloc_info() is the same one, and the summary has it in KiB.
TEST(Report, EveryFormTellsTheSameNumbers) {
  void* const large = malloc(opaque<std::size_t>(5) << 20);
  void* const small = malloc(opaque<std::size_t>(100));
  fill(large, 5 << 20, 1);
  char text[4096], words[4096] = {}, markup[4096] = {}, unwritten[4096];
  // What allocates comes first: the numbers stay the same meanwhile.
  std::FILE* const memory = fmemopen(markup, sizeof markup - 1, "w");
  ASSERT_NE(memory, nullptr);
  std::setvbuf(memory, unwritten, _IOFBF, sizeof unwritten);
  loam_malloc_json(text, sizeof text);
  const auto info = mallinfo2();
  int files[2];
  ASSERT_EQ(pipe(files), 0);
  loam_malloc_summary(files[1]);
  const auto length = read(files[0], words, sizeof words - 1);
  EXPECT_EQ(malloc_info(0, memory), 0);
  std::fclose(memory);
  ASSERT_GT(length, 0);
  const Json found = Json::parse(text);
  const auto of = [&](const char* key) { return static_cast<std::size_t>(found[key].number()); };
  EXPECT_EQ(of("schema"), 1u);
  EXPECT_FALSE(found["hardened"].boolean());
  EXPECT_FALSE(found["version"].string().empty());
  EXPECT_EQ(info.hblks, of("large_blocks"));
  EXPECT_EQ(info.hblkhd, of("large_bytes"));
  EXPECT_EQ(info.uordblks, of("slab_bytes"));
  EXPECT_EQ(info.fordblks, of("dirty_bytes"));
  EXPECT_EQ(info.arena, of("slab_bytes") + of("dirty_bytes"));
  EXPECT_GE(of("large_blocks"), 1u);
  EXPECT_GE(of("large_bytes"), std::size_t{5} << 20);
  EXPECT_GE(of("committed_bytes"), of("slab_bytes"));
  EXPECT_GE(of("reserved_bytes"), of("committed_bytes") + of("dirty_bytes") + of("clean_bytes"));
  EXPECT_GE(of("areas"), 1u);
  EXPECT_GT(of("metadata_bytes"), 0u);

  const std::string summary(words);
  EXPECT_TRUE(
      summary.starts_with("loam malloc " + found["version"].string() + ", process " + std::to_string(getpid()) + "\n"))
      << summary;
  const auto says = [&](const char* label, std::size_t number, const char* unit) {
    const std::string end = " " + std::to_string(number) + " " + unit + "\n";
    for (std::size_t at = summary.find('\n') + 1; at < summary.size(); at = summary.find('\n', at) + 1) {
      const std::string line = summary.substr(at, summary.find('\n', at) + 1 - at);
      if (line.starts_with("  " + std::string(label) + " ") && line.ends_with(end)) return true;
    }
    return false;
  };
  const auto kib = [&](const char* key) { return (of(key) + 1023) / 1024; };
  EXPECT_TRUE(says("in use by spans", kib("committed_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("  slabs", kib("slab_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("  large blocks", kib("large_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("  large blocks", of("large_blocks"), "blocks")) << summary;
  EXPECT_TRUE(says("free, still backed", kib("dirty_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("free, given back", kib("clean_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("given back so far", kib("purged_bytes_total"), "KiB")) << summary;
  EXPECT_TRUE(says("metadata", kib("metadata_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("addresses reserved", kib("reserved_bytes"), "KiB")) << summary;
  EXPECT_TRUE(says("addresses reserved", of("areas"), "areas")) << summary;
  EXPECT_TRUE(says("heaps of threads", of("heaps_in_use"), "in use")) << summary;
  EXPECT_TRUE(says("heaps of threads", of("heaps_idle"), "idle")) << summary;
  EXPECT_TRUE(says("freed by other threads", of("remote_blocks_sent"), "blocks")) << summary;

  const auto field = [](const std::string& name, std::size_t value) {
    return name + "=\"" + std::to_string(value) + "\"";
  };
  const std::string expected = "<malloc version=\"1\">\n<total type=\"slab\" " + field("size", of("slab_bytes")) +
                               "/>\n<total type=\"mmap\" " + field("count", of("large_blocks")) + " " +
                               field("size", of("large_bytes")) + "/>\n<total type=\"rest\" " +
                               field("size", of("dirty_bytes")) + "/>\n<system type=\"current\" " +
                               field("size", of("committed_bytes") + of("dirty_bytes") + of("metadata_bytes")) +
                               "/>\n<aspace type=\"total\" " + field("size", of("reserved_bytes")) + "/>\n</malloc>\n";
  EXPECT_EQ(std::string(markup), expected);
  close(files[0]);
  close(files[1]);
  free(small);
  free(large);
}

TEST(Report, JsonIsCutToTheByte) {
  char whole[4096], part[4096];
  const std::size_t length = loam_malloc_json(whole, sizeof whole);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{2}, length - 1, length, length + 1, length + 2}) {
    std::memset(part, 'x', sizeof part);
    EXPECT_EQ(loam_malloc_json(part, bytes), length);
    const std::size_t taken = bytes - 1 < length ? bytes - 1 : length;
    EXPECT_EQ(std::string_view(part, taken), std::string_view(whole, taken)) << bytes;
    EXPECT_EQ(part[taken], '\0');
    EXPECT_EQ(part[taken + 1], 'x') << "nothing is written behind " << bytes;
  }
  part[0] = 'x';
  EXPECT_EQ(loam_malloc_json(part, 0), length);
  EXPECT_EQ(part[0], 'x');
}

}  // namespace
}  // namespace loam::tests
