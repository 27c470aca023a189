// The messages of report_fault(), and that it ends the process.
#include "runtime/malloc/fault.hpp"

#include "tests/unit/malloc/blocks.hpp"

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

namespace loam::tests {
namespace {

using malloc::Fault;

TEST(FaultTest, TheMessageNamesBlockClassAndOwner) {
  char buffer[512];
  EXPECT_EQ(malloc::describe_fault(buffer, Fault::double_free, reinterpret_cast<void*>(0x7f10), 48, 1234, nullptr),
            "loam malloc: double free: 0x7f10, a block of 48 bytes, heap of thread 1234\n"
            "  It was freed before. Build with -fsanitize=address to see both places.\n");
}

TEST(FaultTest, WhatIsUnknownIsLeftOut) {
  char buffer[512];
  EXPECT_EQ(malloc::describe_fault(buffer, Fault::invalid_free, reinterpret_cast<void*>(0x10), 0, 0, "Do not."),
            "loam malloc: invalid free: 0x10\n  Do not.\n");
}

TEST(FaultTest, EachKindHasItsWords) {
  std::string last;
  for (unsigned kind = 0; kind <= static_cast<unsigned>(Fault::corrupted_free_list); ++kind) {
    char buffer[512];
    const std::string text(malloc::describe_fault(buffer, static_cast<Fault>(kind), buffer, 16, 1, nullptr));
    EXPECT_TRUE(text.starts_with("loam malloc: ")) << text;
    EXPECT_NE(text, last);
    last = text;
  }
}

TEST(FaultDeathTest, ItEndsTheProcessByAbort) {
  EXPECT_EXIT(malloc::report_fault(Fault::double_free, reinterpret_cast<void*>(0x7f10), 48, 7),
              testing::KilledBySignal(SIGABRT), "double free: 0x7f10, a block of 48 bytes, heap of thread 7");
}

TEST(FaultDeathTest, AnAddressOnTheStackIsToldApart) {
  int local = 0;
  EXPECT_EXIT(malloc::report_fault(Fault::invalid_free, &local), testing::KilledBySignal(SIGABRT), "on the stack");
  static int elsewhere = 0;
  EXPECT_EXIT(malloc::report_fault(Fault::invalid_free, &elsewhere), testing::KilledBySignal(SIGABRT), "invalid free");
}

TEST(FaultTest, EachThreadKnowsItsStack) {
  const auto check = [] {
    int local = 0;
    const auto heap = std::make_unique<int>(0);
    static int elsewhere = 0;
    EXPECT_TRUE(malloc::is_on_own_stack(&local));
    EXPECT_FALSE(malloc::is_on_own_stack(heap.get()));
    EXPECT_FALSE(malloc::is_on_own_stack(&elsewhere));
    EXPECT_FALSE(malloc::is_on_own_stack(nullptr));
  };
  check();
  std::thread(check).join();
}

}  // namespace
}  // namespace loam::tests
