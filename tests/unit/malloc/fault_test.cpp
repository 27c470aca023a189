// The messages of report_fault(), and that it ends the process.
#include "runtime/malloc/fault.hpp"
#include "runtime/malloc/settings.hpp"

#include "tests/unit/malloc/blocks.hpp"

#include <pthread.h>
#include <atomic>
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
  for (unsigned kind = 0; kind <= static_cast<unsigned>(Fault::access_after_free); ++kind) {
    char buffer[512];
    const std::string text(malloc::describe_fault(buffer, static_cast<Fault>(kind), buffer, 16, 1, nullptr));
    EXPECT_TRUE(text.starts_with("loam malloc: ")) << text;
    EXPECT_NE(text, last);
    last = text;
  }
}

TEST(FaultTest, EachKindSaysWhatItIsAndWhatToDo) {
  struct Row {
    Fault kind;
    const char *name, *advice;
  };
  const Row rows[] = {
      {Fault::double_free, "double free", "It was freed before."},
      {Fault::invalid_free, "invalid free", "No allocation returned this address."},
      {Fault::interior_pointer, "free of an address inside a block", "Pass what the allocation returned"},
      {Fault::stack_pointer, "free of an address on the stack", "A local variable ends with its function"},
      {Fault::size_mismatch, "free with a wrong size", "Use delete on the type that was made"},
      {Fault::write_past_end, "write past the end of a block", "see who writes."},
      {Fault::write_before_start, "write before the start of a block", "see who writes."},
      {Fault::use_after_free, "write to a freed block", "see who writes after the free."},
      {Fault::corrupted_free_list, "corrupted free list", "Something wrote to a freed block of this slab"},
      {Fault::access_past_end, "access past the end of a block", "who ran past it"},
      {Fault::access_in_front, "access in front of a block", "who went below it"},
      {Fault::access_after_free, "access to a freed block", "who went on using it"},
  };
  for (const Row& row : rows) {
    char buffer[512];
    const std::string text(malloc::describe_fault(buffer, row.kind, reinterpret_cast<void*>(0x10), 0, 0, nullptr));
    EXPECT_TRUE(text.starts_with(std::string("loam malloc: ") + row.name + ": 0x10\n  ")) << text;
    EXPECT_NE(text.find(row.advice), std::string::npos) << text;
  }
}

TEST(FaultTest, WhatAHeapFindsHasAKindOfItsOwn) {
  EXPECT_EQ(malloc::kind_of(heap::Fault::foreign), Fault::invalid_free);
  EXPECT_EQ(malloc::kind_of(heap::Fault::interior), Fault::interior_pointer);
  EXPECT_EQ(malloc::kind_of(heap::Fault::double_free), Fault::double_free);
  EXPECT_EQ(malloc::kind_of(heap::Fault::wrong_size), Fault::size_mismatch);
  EXPECT_EQ(malloc::kind_of(heap::Fault::write_past_end), Fault::write_past_end);
  EXPECT_EQ(malloc::kind_of(heap::Fault::write_before_start), Fault::write_before_start);
  EXPECT_EQ(malloc::kind_of(heap::Fault::use_after_free), Fault::use_after_free);
}

TEST(FaultTest, EachPartOfTheMessageIsThereWhereItIsKnown) {
  char buffer[512];
  const auto of = [&](std::size_t bytes, unsigned thread) {
    const auto address = reinterpret_cast<void*>(0x10);
    return std::string(malloc::describe_fault(buffer, Fault::double_free, address, bytes, thread, "Do."));
  };
  EXPECT_EQ(of(0, 0), "loam malloc: double free: 0x10\n  Do.\n");
  EXPECT_EQ(of(1, 0), "loam malloc: double free: 0x10, a block of 1 bytes\n  Do.\n");
  EXPECT_EQ(of(0, 1), "loam malloc: double free: 0x10, heap of thread 1\n  Do.\n");
  EXPECT_EQ(of(1, 1), "loam malloc: double free: 0x10, a block of 1 bytes, heap of thread 1\n  Do.\n");
}

TEST(FaultTest, BelowTheCallersFrameAndAboveTheThreadsIsNotOnTheStack) {
  const auto check = [] {
    const auto here = reinterpret_cast<const char*>(__builtin_frame_address(0));
    EXPECT_FALSE(malloc::is_on_own_stack(here - (1 << 20)));
    EXPECT_FALSE(malloc::is_on_own_stack(reinterpret_cast<const void*>(~std::uintptr_t{0})));
    EXPECT_TRUE(malloc::is_on_own_stack(here));
  };
  check();
  std::thread(check).join();
  // The address where a stack begins is outside of it.
  EXPECT_FALSE(malloc::is_on_own_stack(__libc_stack_end));
  std::thread([] { EXPECT_FALSE(malloc::is_on_own_stack(reinterpret_cast<const void*>(pthread_self()))); }).join();
  // One thread's stack is no other's.
  int local = 0;
  std::thread([&] { EXPECT_FALSE(malloc::is_on_own_stack(&local)); }).join();
  std::atomic<const void*> of_other{nullptr};
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    int own = 0;
    of_other = &own;
    while (!is_done) std::this_thread::yield();
  });
  while (of_other == nullptr) std::this_thread::yield();
  EXPECT_FALSE(malloc::is_on_own_stack(of_other));
  is_done = true;
  other.join();
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
