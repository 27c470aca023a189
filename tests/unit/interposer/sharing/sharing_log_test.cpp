// The sampler's file holds whole watches at each moment, however the process ends.
#include "lab/interposer/sharing/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace loam::interposer::sharing {
namespace {

// What a reader of the file sees: the lines that its head counts.
std::string published(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  LogHead head;
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  EXPECT_EQ(head.magic, LogHead::kMagic);
  std::string lines(head.used.load(), '\0');
  file.read(lines.data(), static_cast<std::streamsize>(lines.size()));
  return lines;
}

TEST(SharingLog, AWatchIsInTheFileAsAWholeOrNotAtAll) {
  const std::string path = testing::TempDir() + "sharing-log";
  const std::string name = path + "." + std::to_string(getpid()) + ".0";
  std::remove(name.c_str());
  Log log;
  ASSERT_TRUE(log.open(path.c_str()));
  log.say("begin %d\n", 1);
  EXPECT_EQ(published(name), "");
  log.publish();
  EXPECT_EQ(published(name), "begin 1\n");
  log.say("watch %d\n", 2);
  log.say("caught %d\n", 3);
  EXPECT_EQ(published(name), "begin 1\n");
  log.publish();
  EXPECT_EQ(published(name), "begin 1\nwatch 2\ncaught 3\n");
  log.forget();
  log.publish();  // of a forked child, which has no file
  std::remove(name.c_str());
}

TEST(SharingLog, ACallThatMayKillTheMonitorIsInTheFileWhileItLasts) {
  const std::string path = testing::TempDir() + "sharing-asking";
  const std::string name = path + "." + std::to_string(getpid()) + ".0";
  std::remove(name.c_str());
  const auto asking = [&name] {
    std::ifstream file(name, std::ios::binary);
    LogHead head;
    file.read(reinterpret_cast<char*>(&head), sizeof head);
    return head.asking.load();
  };
  Log log;
  log.asking(true);  // no file yet
  ASSERT_TRUE(log.open(path.c_str()));
  EXPECT_EQ(asking(), 0u);
  log.asking(true);
  EXPECT_EQ(asking(), 1u);
  log.asking(false);
  EXPECT_EQ(asking(), 0u);
  log.forget();
  std::remove(name.c_str());
}

}  // namespace
}  // namespace loam::interposer::sharing
