// Sections that are elided in hardware, on a simulated machine: every machine runs what tests/unit/tm/hardware/elision_test.cpp
// asks of real ones, and what goes wrong under the lock. Each piece prints "done" if all was right.
//   excluded   sections in hardware and sections under the lock, of several threads, exclude one another
//   counted    what an aborted attempt leaves: its count, and no trace
//   throws     an exception leaves a section that runs under the lock: the lock is free, the blocks that it freed are freed
// Run by tests/lab/simulator/test_elided.py; mutants run them as well.
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/tm/hardware/elision.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace loam;
using tm::hardware::elide;
using tm::hardware::ElidedMemory;
using tm::hardware::FallbackLock;
using tm::hardware::Section;

// Ends the program if what must hold does not.
void must(bool holds, const char* what) {
  if (holds) return;
  std::printf("failed: %s\n", what);
  std::exit(1);
}

void spend(unsigned steps) {
  for (volatile unsigned left = steps; left > 0;) left = left - 1;
}

FallbackLock lock;

void excluded() {
  constexpr unsigned kThreads = 4, kTimes = 400;
  struct alignas(128) Counter {
    volatile long value = 0;  // read and written where it stands
  };
  static Counter left, right;
  std::vector<tm::Statistics> counted(kThreads);
  std::vector<std::thread> threads;
  for (unsigned own = 0; own < kThreads; ++own)
    threads.emplace_back([&, own] {
      platform::pin_this_thread(own);
      tm::Statistics mine;
      for (unsigned n = 0; n < kTimes; ++n)
        elide(lock, mine, [&] {
          // Some make a system call, which takes them under the lock: they read at once, and stay in the section. The attempts of
          // the others are under way for a while before they touch anything, so that some began before the lock was taken.
          const bool stays = (n + own) % 8 == 0;
          spend(stays ? 0 : 50);
          const long seen = left.value;
          if (stays) platform::thread_id();
          spend(stays ? 100 : 0);
          left.value = seen + 1;
          right.value = right.value + 1;
          return 0;
        });
      counted[own] = mine;
    });
  for (auto& thread : threads) thread.join();
  std::uint64_t hardware = 0, serialised = 0;
  for (const tm::Statistics& each : counted) {
    must(each.hardware + each.serialised == each.commits && each.commits == kTimes, "every section is counted once");
    hardware += each.hardware;
    serialised += each.serialised;
  }
  must(left.value == long{kThreads} * kTimes && right.value == left.value, "an update was lost");
  must(serialised >= kThreads * kTimes / 8, "some ran under the lock");
  must(hardware > kThreads * kTimes / 4, "hardware took part");
}

void counted() {
  tm::Statistics mine;
  long value = 1;
  int outside = 0;
  const int result = elide(lock, mine, [&] {
    ++value;
    ++outside;
    platform::thread_id();  // a system call
    return 5;
  });
  must(result == 5 && outside == 1 && value == 2, "an aborted attempt has no effect");
  must(mine.commits == 1 && mine.hardware == 0 && mine.serialised == 1, "it is counted as one under the lock");
  must(mine.aborts_total() == 1, "its abort is counted");
  must(!lock.held(), "the lock is free");
}

void throws() {
  static thread_local constinit ElidedMemory memory;
  static long* shared = nullptr;
  tm::Statistics mine;
  for (int round = 0; round < 20; ++round) {
    long* const before = shared;
    bool caught = false;
    try {
      elide(lock, mine, memory, [&](Section& section) {
        platform::thread_id();  // a system call: it runs under the lock
        shared = static_cast<long*>(section.allocate(sizeof(long)));
        *shared = round;
        if (before != nullptr) section.release(before);
        if (round >= 0) throw round;
        return 0;
      });
    } catch (int thrown) {
      caught = thrown == round;
    }
    must(caught, "the exception comes out");
    must(!lock.held(), "the lock is free");
    must(memory.live() == 1, "what the section has freed is freed");
    // Another thread goes on in hardware.
    std::thread([&] {
      tm::Statistics theirs;
      must(elide(lock, theirs, [] { return *shared; }) == round, "what the section did before it threw stays");
    }).join();
  }
  memory.end_thread();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view piece = argc > 1 ? argv[1] : "";
  if (piece == "excluded") {
    excluded();
  } else if (piece == "counted") {
    counted();
  } else if (piece == "throws") {
    throws();
  } else {
    return 2;
  }
  std::puts("done");
  return 0;
}
