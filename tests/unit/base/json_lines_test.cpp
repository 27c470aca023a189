#include "runtime/base/json_lines.hpp"

#include "tests/unit/support/json.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

namespace loam {
namespace {

using base::JsonLine;
using tests::Json;

TEST(JsonLine, WritesNestedValuesWithCommasWhereTheyBelong) {
  char buffer[256];
  JsonLine line(buffer);
  line.object().field("kind", "begin").array("cpus").value(0).value(1).end();
  line.object("parameters").field("size", 16).field("touch", true).end().array("none").end().end();
  EXPECT_EQ(line.view(), R"({"kind":"begin","cpus":[0,1],"parameters":{"size":16,"touch":true},"none":[]})");
}

TEST(JsonLine, NumbersReadBackExactly) {
  const double values[] = {0.0, -1.5, 0.1, 1e300, 5e-324, 123456789.123, 1.0 / 3};
  for (const double value : values) {
    char buffer[64];
    JsonLine line(buffer);
    line.array().value(value).end();
    EXPECT_EQ(Json::parse(line.view()).array()[0].number(), value) << line.view();
  }
  char buffer[128];
  JsonLine line(buffer);
  line.array().value(std::numeric_limits<std::uint64_t>::max()).value(std::numeric_limits<std::int64_t>::min()).end();
  EXPECT_EQ(line.view(), "[18446744073709551615,-9223372036854775808]");
}

TEST(JsonLine, NumbersThatJsonLacksBecomeNull) {
  char buffer[64];
  JsonLine line(buffer);
  line.array().value(std::numeric_limits<double>::infinity()).value(std::numeric_limits<double>::quiet_NaN()).end();
  EXPECT_EQ(line.view(), "[null,null]");
}

TEST(JsonLine, EscapesWhatJsonForbids) {
  char buffer[128];
  JsonLine line(buffer);
  const std::string_view hard("quote\" back\\ line\n tab\t zero\0 end", 33);
  line.array().value(hard).end();
  EXPECT_EQ(Json::parse(line.view()).array()[0].string(), hard);
}

TEST(JsonLine, EveryShorterBufferIsRefusedAndNoneOverwritten) {
  constexpr std::size_t kNeeded = 25;  // {"key":"a longer value"} and the newline
  for (std::size_t size = 0; size <= kNeeded; ++size) {
    char buffer[64];
    std::fill(std::begin(buffer), std::end(buffer), '#');
    JsonLine line({buffer, size});
    line.object().field("key", "a longer value").end();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const bool written = line.write_to(ends[1]);
    const int error = errno;
    EXPECT_EQ(written, size == kNeeded) << size;
    if (!written) {
      EXPECT_EQ(error, EMSGSIZE);
    }
    for (std::size_t i = size; i < sizeof buffer; ++i) EXPECT_EQ(buffer[i], '#');
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

TEST(JsonLine, OneLineIsOneWrite) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_DIRECT), 0);  // a packet per write
  for (int i = 0; i < 2; ++i) {
    char buffer[64];
    JsonLine line(buffer);
    line.object().field("i", i).end();
    ASSERT_TRUE(line.write_to(ends[1]));
  }
  char packet[64];
  const auto size = ::read(ends[0], packet, sizeof packet);
  EXPECT_EQ(std::string_view(packet, static_cast<std::size_t>(size)), "{\"i\":0}\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(JsonLine, ReportsWhatTheDescriptorDidNotTake) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  char buffer[64];
  JsonLine line(buffer);
  line.object().end();
  EXPECT_FALSE(line.write_to(full));
  EXPECT_EQ(errno, ENOSPC);
  ::close(full);
}

}  // namespace
}  // namespace loam
