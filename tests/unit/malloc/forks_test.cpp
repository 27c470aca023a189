// fork() beside threads that allocate: the child allocates, frees what its parent made, starts threads and ends. A
// child that hangs is killed by its own alarm, and counted. LOAM_FORKS says how many (200); tests/stress/fork_storm.cpp
// makes 100000 in minutes.
#include "tests/harness/watchdog.hpp"
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

constexpr unsigned kChildSeconds = 20;  // far beyond what a child takes on a busy machine
constexpr int kThreads = 8;

long forks() {
  const char* const asked = std::getenv("LOAM_FORKS");
  return asked != nullptr ? std::atol(asked) : 200;
}

// Sizes of small, middle and large blocks in turn.
std::size_t size_of(unsigned i) { return i % 64 == 0 ? 200000 + i % 977 : i % 8 == 0 ? 3000 + i % 501 : 16 + i % 300; }

bool use_heap(unsigned seed, unsigned count) {
  void* kept[32] = {};
  bool good = true;
  for (unsigned i = 0; i < count; ++i) {
    void*& place = kept[(i * 7 + seed) % 32];
    std::free(place);
    const std::size_t bytes = size_of(i + seed);
    place = std::malloc(opaque(bytes));
    good = good && place != nullptr;
    if (place == nullptr) break;
    fill(place, 16, i);
    good = good && is_filled(place, 16, i);
  }
  for (void* block : kept) std::free(block);
  return good;
}

// What a child does. returns its exit status: 0, or what went wrong
int child(std::vector<void*>& of_parent, unsigned seed) {
  for (void* block : of_parent) {
    if (!is_filled(block, 100, 77)) return 2;
    std::free(block);
  }
  if (!use_heap(seed, 300)) return 3;
  std::atomic<int> wrong{0};
  {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) threads.emplace_back([&, t] { wrong += !use_heap(seed + t, 100); });
    for (auto& thread : threads) thread.join();
  }
  if (wrong != 0) return 4;
  if (seed % 16 == 0 && loam_malloc_verify() != nullptr) return 5;
  return 0;
}

// Threads that allocate, and hand blocks to one another, until the object ends.
class Allocating {
 public:
  explicit Allocating(int count) {
    for (int t = 0; t < count; ++t)
      threads_.emplace_back([this, t] {
        unsigned i = static_cast<unsigned>(t) * 1000;
        while (!stop_.load(std::memory_order_relaxed)) {
          std::free(places_[i % 128].exchange(std::malloc(opaque(size_of(i)))));
          ++i;
        }
      });
  }
  ~Allocating() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    for (auto& place : places_) std::free(place.exchange(nullptr));
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<void*> places_[128] = {};
  std::vector<std::thread> threads_;
};

void expect_ends_well(pid_t pid, long fork_number) {
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  if (WIFSIGNALED(status)) {
    ADD_FAILURE() << "fork " << fork_number << ": the child "
                  << (WTERMSIG(status) == SIGALRM ? "hung" : "was ended by signal ") << WTERMSIG(status);
  } else {
    EXPECT_EQ(WEXITSTATUS(status), 0) << "fork " << fork_number;
  }
}

pid_t fork_child(std::vector<void*>& of_parent, unsigned seed) {
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGALRM, SIG_DFL);
    alarm(kChildSeconds);
    _exit(child(of_parent, seed));
  }
  return pid;
}

std::vector<void*> some_blocks() {
  std::vector<void*> blocks(50);
  for (void*& block : blocks) {
    block = std::malloc(opaque<std::size_t>(100));
    fill(block, 100, 77);
  }
  return blocks;
}

TEST(Fork, ChildrenOfAnAllocatingProcessGoOn) {
  tests::may_take(60);
  const Allocating others(kThreads);
  std::vector<void*> blocks = some_blocks();
  const long count = forks();
  for (long i = 0; i < count && !HasFailure(); ++i) {
    const pid_t pid = fork_child(blocks, static_cast<unsigned>(i));
    ASSERT_GT(pid, 0);
    expect_ends_well(pid, i);
  }
  for (void* block : blocks) {
    EXPECT_TRUE(is_filled(block, 100, 77));  // the children freed their own copies
    std::free(block);
  }
}

TEST(Fork, SeveralThreadsMayForkAtOnce) {
  const Allocating others(2);
  std::vector<std::thread> forking;
  for (unsigned t = 0; t < 3; ++t)
    forking.emplace_back([t] {
      std::vector<void*> blocks = some_blocks();
      for (unsigned i = 0; i < 20; ++i) {
        const pid_t pid = fork_child(blocks, t * 100 + i);
        ASSERT_GT(pid, 0);
        expect_ends_well(pid, i);
      }
      for (void* block : blocks) std::free(block);
    });
  for (auto& thread : forking) thread.join();
}

TEST(Fork, AChildMayForkAgain) {
  const Allocating others(2);
  std::vector<void*> blocks = some_blocks();
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kChildSeconds);
    const pid_t again = fork_child(blocks, 1);
    int status = 0;
    waitpid(again, &status, 0);
    _exit(status == 0 && use_heap(3, 300) ? 0 : 1);
  }
  expect_ends_well(pid, 0);
  for (void* block : blocks) std::free(block);
}

// libc holds its list of open FILEs during a fork, and who holds that list may wait for a thread that allocates.
TEST(Fork, OthersAllocateWhileAForkWaitsForLibc) {
  using Function = void (*)();
  const auto lock_list = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "_IO_list_lock"));
  const auto unlock_list = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "_IO_list_unlock"));
  if (lock_list == nullptr || unlock_list == nullptr) GTEST_SKIP() << "this libc shows no list of FILEs";
  std::atomic<bool> locked{false}, forking{false}, served{false};
  std::thread other([&] {
    lock_list();
    locked = true;
    while (!forking) std::this_thread::yield();
    usleep(100000);  // until the fork waits
    served = use_heap(1, 300);
    std::thread([] { use_heap(2, 300); }).join();
    unlock_list();
  });
  while (!locked) std::this_thread::yield();
  std::vector<void*> blocks = some_blocks();
  forking = true;
  const pid_t pid = fork_child(blocks, 1);
  ASSERT_GT(pid, 0);
  expect_ends_well(pid, 0);
  other.join();
  EXPECT_TRUE(served);
  for (void* block : blocks) std::free(block);
}

// Handlers that were registered after ours run while the heap still serves.
void* in_handler = nullptr;

TEST(Fork, HandlersOfOthersMayAllocate) {
  const auto allocate = [] {
    void* const next = std::malloc(opaque<std::size_t>(3000));
    std::free(in_handler);
    in_handler = next;
  };
  ASSERT_EQ(pthread_atfork(allocate, allocate, allocate), 0);
  const Allocating others(2);
  std::vector<void*> blocks = some_blocks();
  for (unsigned i = 0; i < 20; ++i) {
    const pid_t pid = fork_child(blocks, i);
    ASSERT_GT(pid, 0);
    expect_ends_well(pid, i);
  }
  for (void* block : blocks) std::free(block);
}

}  // namespace
}  // namespace loam::tests
