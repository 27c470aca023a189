// Threads that come and go: blocks outlive their threads, destructors of threads allocate, and the heap serves before
// anything of the program or of any library has been initialised.
#include "tests/unit/malloc/blocks.hpp"

#include "include/loam/malloc.h"

#include <pthread.h>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace loam::tests {
namespace {

// ---- before static constructors ----

void* from_preinit = nullptr;
void* from_constructor = nullptr;

// Runs before the constructors of all libraries, libc's and the allocator's own.
void allocate_early() {
  from_preinit = std::malloc(opaque<std::size_t>(1000));
  fill(from_preinit, 1000, 11);
  void* const large = std::calloc(1, opaque<std::size_t>(1) << 20);
  std::free(large);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const preinit)() = allocate_early;

[[gnu::constructor(101)]] void allocate_in_constructor() {
  from_constructor = std::malloc(opaque<std::size_t>(1000));
  fill(from_constructor, 1000, 12);
}

TEST(Threads, TheHeapServesBeforeAllConstructors) {
  ASSERT_NE(from_preinit, nullptr);
  EXPECT_TRUE(is_filled(from_preinit, 1000, 11));
  EXPECT_TRUE(is_filled(from_constructor, 1000, 12));
  std::free(from_preinit);
  from_constructor = std::realloc(from_constructor, 100000);
  EXPECT_TRUE(is_filled(from_constructor, 1000, 12));
  std::free(from_constructor);
}

// ---- threads that exit ----

long number(const char* key) {
  char text[4096];
  loam_malloc_json(text, sizeof text);
  const std::string_view whole = text;
  const auto at = whole.find(std::string("\"") + key + "\":");
  return at == std::string_view::npos ? -1 : std::atol(text + at + std::strlen(key) + 3);
}

TEST(Threads, OthersFreeTheBlocksOfThreadsThatHaveEnded) {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks(2000);
    std::thread maker([&] {
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = std::malloc(opaque(16 + i * 13 % 3000));
        fill(blocks[i], 16 + i * 13 % 3000, static_cast<unsigned>(i));
      }
    });
    maker.join();
    std::vector<std::thread> freers;
    std::atomic<long> wrong{0};
    for (std::size_t t = 0; t < 3; ++t)
      freers.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 3) {
          wrong += !is_filled(blocks[i], 16 + i * 13 % 3000, static_cast<unsigned>(i));
          std::free(blocks[i]);
        }
      });
    for (auto& freer : freers) freer.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Threads, OthersFreeWhileTheThreadEnds) {
  // Short-lived threads put blocks into places and free what they find there; long-lived ones only free.
  constexpr int kPlaces = 256;
  static std::atomic<void*> places[kPlaces];
  std::atomic<bool> stop{false};
  std::vector<std::thread> takers;
  for (int t = 0; t < 2; ++t)
    takers.emplace_back([&, t] {
      for (unsigned i = static_cast<unsigned>(t); !stop; i += 7) std::free(places[i % kPlaces].exchange(nullptr));
    });
  for (int round = 0; round < 200; ++round) {
    std::vector<std::thread> short_lived;
    for (int t = 0; t < 4; ++t)
      short_lived.emplace_back([&, t] {
        for (unsigned i = 0; i < 300; ++i)
          std::free(
              places[(i * 5 + static_cast<unsigned>(t)) % kPlaces].exchange(std::malloc(opaque(16 + i * 11 % 2000))));
      });
    for (auto& thread : short_lived) thread.join();
  }
  stop = true;
  for (auto& taker : takers) taker.join();
  for (auto& place : places) std::free(place.exchange(nullptr));
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Threads, HeapsOfEndedThreadsAreHandedOver) {
  const long before = number("heaps_in_use");
  for (int i = 0; i < 100; ++i) std::thread([] { std::free(std::malloc(opaque<std::size_t>(100))); }).join();
  EXPECT_LE(number("heaps_in_use"), before + 1);
}

// ---- destructors of threads ----

std::atomic<int> rounds{0};
pthread_key_t late_key;

// Each key's destructor allocates, frees what another round has left, and asks for one more round.
void destructor_of_a_key(void* block) {
  EXPECT_TRUE(is_filled(block, 500, 21));
  std::free(block);
  if (rounds.fetch_add(1) % 3 == 2) return;
  void* const next = std::malloc(opaque<std::size_t>(500));
  fill(next, 500, 21);
  pthread_setspecific(late_key, next);
}
TEST(Threads, DestructorsOfKeysMayAllocate) {
  ASSERT_EQ(pthread_key_create(&late_key, destructor_of_a_key), 0);
  const long before = number("heaps_in_use");
  for (int i = 0; i < 50; ++i)
    std::thread([] {
      void* const block = std::malloc(opaque<std::size_t>(500));
      fill(block, 500, 21);
      pthread_setspecific(late_key, block);
    }).join();
  EXPECT_EQ(rounds, 150);
  // Each thread attached anew in later rounds, and was handed over anew.
  EXPECT_LE(number("heaps_in_use"), before + 1);
  pthread_key_delete(late_key);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

struct Allocating {
  std::string text = std::string(300, 'x');
  ~Allocating() {
    std::vector<std::string> more;
    for (int i = 0; i < 100; ++i) more.emplace_back(static_cast<std::size_t>(i) * 17, 'y');
    text.append(more.back());
  }
};
thread_local Allocating in_thread;

TEST(Threads, DestructorsOfThreadLocalsMayAllocate) {
  const long before = number("heaps_in_use");
  for (int i = 0; i < 50; ++i) std::thread([] { EXPECT_EQ(in_thread.text.size(), 300u); }).join();
  EXPECT_LE(number("heaps_in_use"), before + 1);
  EXPECT_EQ(loam_malloc_verify(), nullptr);
}

TEST(Threads, BlocksOfAnEndedThreadStayGoodWhileOthersTakeOverItsHeap) {
  void* kept = nullptr;
  std::thread([&] {
    kept = std::malloc(opaque<std::size_t>(1000));
    fill(kept, 1000, 31);
  }).join();
  std::vector<std::thread> others;
  for (int t = 0; t < 4; ++t)
    others.emplace_back([] {
      for (int i = 0; i < 10000; ++i) std::free(std::malloc(opaque<std::size_t>(1000)));
    });
  for (auto& other : others) other.join();
  EXPECT_TRUE(is_filled(kept, 1000, 31));
  std::free(kept);
}

}  // namespace
}  // namespace loam::tests
