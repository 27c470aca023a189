// The orders in which a thread can end: whatever runs last in it, its heap is handed over, and no heap is lost.
//   libc frees blocks of its own after the last destructor: the second block of a thread's keys (from index 32 on), and
//   blocks of other threads whose stacks it no longer keeps.
#include "tests/harness/child.hpp"
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

long number(const char* key) {
  char text[4096];
  loam_malloc_json(text, sizeof text);
  const std::string_view whole = text;
  const auto at = whole.find(std::string("\"") + key + "\":");
  return at == std::string_view::npos ? -1 : std::atol(text + at + std::strlen(key) + 3);
}
long heaps_in_use() { return number("heaps_in_use"); }
long heaps() { return heaps_in_use() + number("heaps_idle"); }

void use_memory() {
  void* const block = std::malloc(opaque<std::size_t>(500));
  fill(block, 500, 1);
  EXPECT_TRUE(is_filled(block, 500, 1));
  std::free(block);
}

// ---- keys ----

constexpr int kKeys = 40;  // libc has room for 32 in the thread itself
pthread_key_t keys[kKeys], last_key;

void frees(void* value) { std::free(value); }
void frees_and_allocates(void* value) {
  std::free(value);
  use_memory();
}

// A destructor that runs in all four rounds, each time after the heap has been handed over.
struct Rounds {
  int left;
};
void runs_in_each_round(void* value) {
  use_memory();
  std::free(std::aligned_alloc(4096, opaque<std::size_t>(8192)));
  std::free(std::realloc(std::calloc(opaque<std::size_t>(1), 100), 20000));
  auto* const rounds = static_cast<Rounds*>(value);
  if (--rounds->left == 0) {
    std::free(rounds);
  } else {
    auto* const next = static_cast<Rounds*>(std::malloc(sizeof(Rounds)));
    *next = *rounds;
    std::free(rounds);
    pthread_setspecific(last_key, next);
  }
}
// The value of the key says which round it is.
int round_of_last_key[PTHREAD_DESTRUCTOR_ITERATIONS];
void allocates_in_the_last_round(void* value) {
  int* const round = static_cast<int*>(value);
  if (round == std::end(round_of_last_key) - 1) return use_memory();
  pthread_setspecific(last_key, round + 1);
}
void leaves(void* value) {
  std::free(value);
  use_memory();
  pthread_exit(nullptr);
}

void make_keys(void (*destructor)(void*)) {
  for (auto& key : keys) ASSERT_EQ(pthread_key_create(&key, nullptr), 0);
  ASSERT_EQ(pthread_key_create(&last_key, destructor), 0);
}
void delete_keys() {
  for (auto& key : keys) pthread_key_delete(key);
  pthread_key_delete(last_key);
}

// ---- what a thread does ----

void set_all_keys() {
  for (auto& key : keys) pthread_setspecific(key, &key);
}
void* sets_keys(void*) {
  set_all_keys();
  pthread_setspecific(last_key, std::malloc(opaque<std::size_t>(64)));
  use_memory();
  return nullptr;
}
void* sets_keys_for_four_rounds(void*) {
  set_all_keys();
  auto* const rounds = static_cast<Rounds*>(std::malloc(sizeof(Rounds)));
  rounds->left = PTHREAD_DESTRUCTOR_ITERATIONS;
  pthread_setspecific(last_key, rounds);
  return nullptr;
}
void* sets_no_block(void*) {
  pthread_setspecific(last_key, round_of_last_key);
  return nullptr;
}
void* sets_no_block_but_had_some(void* all) {
  use_memory();
  return sets_no_block(all);
}
void* leaves_by_pthread_exit(void* all) {
  sets_keys(all);
  pthread_exit(nullptr);
}
void* is_cancelled(void* all) {
  sets_keys(all);
  for (;;) pause();
}
struct AllocatesAtTheEnd {
  std::string text = std::string(300, 'x');
  ~AllocatesAtTheEnd() {
    text.append(1000, 'y');
    set_all_keys();
    use_memory();
  }
};
void* has_thread_locals(void* all) {
  thread_local AllocatesAtTheEnd at_the_end;
  EXPECT_EQ(at_the_end.text.size(), 300u);
  return sets_keys(all);
}
void* frees_what_others_made(void*) {
  return nullptr;  // libc frees on the way out
}

struct Order {
  const char* name;
  void (*destructor)(void*);
  void* (*thread)(void*);
};
constexpr Order kOrders[] = {
    {"keys without destructors", nullptr, sets_keys_for_four_rounds},
    {"destructors that free", frees, sets_keys},
    {"destructors that allocate", frees_and_allocates, sets_keys},
    {"destructors that run in every round", runs_in_each_round, sets_keys_for_four_rounds},
    {"destructors that allocate in the last round alone", allocates_in_the_last_round, sets_no_block_but_had_some},
    {"a destructor that calls pthread_exit", leaves, sets_keys},
    {"pthread_exit", frees_and_allocates, leaves_by_pthread_exit},
    {"destructors of thread-locals", frees_and_allocates, has_thread_locals},
    {"no use of memory", nullptr, frees_what_others_made},
};

int threads_of(const Order& order) {
  static const bool all = std::getenv("LOAM_TEST_ALL") != nullptr;
  return all ? static_cast<int>(100'000 / std::size(kOrders)) : order.thread == is_cancelled ? 100 : 300;
}

void run_one_after_another(const Order& order) {
  make_keys(order.destructor);
  use_memory();
  const long in_use = heaps_in_use(), all = heaps();
  for (int i = 0; i < threads_of(order); ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, order.thread, nullptr), 0);
    if (order.thread == is_cancelled) pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  EXPECT_EQ(heaps_in_use(), in_use) << order.name;
  EXPECT_LE(heaps(), all + 1) << order.name;
  delete_keys();
  EXPECT_EQ(loam_malloc_verify(), nullptr) << order.name;
}

TEST(ThreadOrders, NoHeapIsLostWhenThreadsEndOneAfterAnother) {
  for (const Order& order : kOrders) run_one_after_another(order);
}

TEST(ThreadOrders, NoHeapIsLostWhenThreadsAreCancelled) {
  run_one_after_another({"cancelled", frees_and_allocates, is_cancelled});
  run_one_after_another({"cancelled, for every round", runs_in_each_round, is_cancelled});
}

// Of detached threads that end together; waits until the kernel has no other thread any more.
TEST(ThreadOrders, NoHeapIsLostWhenThreadsAreDetached) {
  constexpr int kTogether = 10;
  for (const Order& order : kOrders) {
    make_keys(order.destructor);
    use_memory();
    const long in_use = heaps_in_use(), all = heaps();
    for (int i = 0; i < threads_of(order); i += kTogether) {
      for (int t = 0; t < kTogether; ++t) {
        pthread_t thread;
        ASSERT_EQ(pthread_create(&thread, nullptr, order.thread, nullptr), 0);
        pthread_detach(thread);
      }
      const auto others = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}) - 1; };
      while (others() != 0) usleep(100);
    }
    EXPECT_EQ(heaps_in_use(), in_use) << order.name;
    EXPECT_LE(heaps(), all + kTogether) << order.name;
    delete_keys();
  }
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

// Nothing tells the library that the last round is the thread's first one with a heap. The next threads find that heap.
TEST(ThreadOrders, AHeapThatIsFirstUsedInTheLastRoundServesLaterThreads) {
  make_keys(allocates_in_the_last_round);
  const long all = heaps();
  for (int i = 0; i < 300; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, sets_no_block, nullptr), 0);
    pthread_join(thread, nullptr);
  }
  // For a moment after the join the kernel still knows the thread.
  EXPECT_LE(heaps(), all + 10);
  delete_keys();
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

// ---- the last thread ----

// In the child of a fork the thread that forked is the only one: when it ends, libc ends the process in it, after its
// last destructor.
void looks_at_heaps_at_exit() {
  use_memory();
  std::free(std::malloc(opaque<std::size_t>(100000)));
  _exit(heaps_in_use() == 0 && loam_malloc_verify() == nullptr && !testing::Test::HasFailure() ? 0 : 1);
}
void* is_the_last_thread_of_a_child(void* status) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::atexit(looks_at_heaps_at_exit);
    return sets_keys(nullptr);
  }
  waitpid(child, static_cast<int*>(status), 0);
  return nullptr;
}
TEST(ThreadOrders, TheLastThreadEndsTheProcessWithoutAHeap) {
  make_keys(frees_and_allocates);
  int status = -1;
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, is_the_last_thread_of_a_child, &status), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(status, 0);
  delete_keys();
}

// ---- dlclose ----

void* uses_a_library(void* path) {
  void* const library = dlopen(static_cast<const char*>(path), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return nullptr;
  auto* const use = reinterpret_cast<void* (*)()>(dlsym(library, "loam_use_thread_locals"));
  EXPECT_NE(use(), nullptr);
  pthread_setspecific(last_key, library);
  set_all_keys();
  return nullptr;
}
void closes(void* library) { dlclose(library); }

TEST(ThreadOrders, NoHeapIsLostWhenADestructorClosesALibrary) {
  make_keys(closes);
  std::string path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "loam-unloaded-library.so";
  const long in_use = heaps_in_use(), all = heaps();
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, uses_a_library, path.data()), 0);
    pthread_join(thread, nullptr);
  }
  EXPECT_EQ(heaps_in_use(), in_use);
  EXPECT_LE(heaps(), all + 1);
  delete_keys();
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

// ---- frees ----

// A thread that only frees gets a heap when it has freed a few blocks, so that it sends the others in batches.
TEST(ThreadOrders, AThreadThatOnlyFreesGetsAHeapAfterAFewBlocks) {
  std::vector<void*> blocks(100);
  for (auto& block : blocks) block = std::malloc(opaque<std::size_t>(200));
  struct Seen {
    std::vector<void*>* blocks;
    long after_few, after_all;
  } seen{&blocks, 0, 0};
  const long in_use = heaps_in_use();
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* argument) -> void* {
                  auto& [all, after_few, after_all] = *static_cast<Seen*>(argument);
                  for (int i = 0; i < 8; ++i) std::free((*all)[static_cast<std::size_t>(i)]);
                  after_few = heaps_in_use();
                  for (std::size_t i = 8; i < all->size(); ++i) std::free((*all)[i]);
                  after_all = heaps_in_use();
                  return nullptr;
                },
                &seen),
            0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(seen.after_few, in_use);
  EXPECT_EQ(seen.after_all, in_use + 1);
  EXPECT_EQ(heaps_in_use(), in_use);
}

}  // namespace
}  // namespace loam::tests
