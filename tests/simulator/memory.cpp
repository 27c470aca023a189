// Programs of a few accesses whose cost and misses can be told beforehand: tests/lab/simulator/test_validation.py runs
// them on simulated machines and compares.
//   ladder BYTES            one thread follows pointers through so many bytes, a line each: prints cycles per access
//   ping-pong ROUNDS        two threads hand a flag and a word to each other
//   counters STRIDE TIMES   eight threads add to counters of their own, so many bytes apart
//   stores CORES STRIDE TIMES
//                           that many threads store to words of their own, so many bytes apart, and read nothing
//   fetch-add TIMES [CORES] eight threads, or so many, add to one counter
//   read-shared TIMES       eight threads read one word
//   mixed TIMES CORES       so many threads: each reads and writes words that all share, in an order of its own, and adds to one
//                           counter now and then
//   allocate BYTES COUNT    one thread allocates so many blocks, frees them, and does both again: of the second time, cycles of
//                           the allocations and of the frees
//   free-there BYTES COUNT  one thread allocates so many blocks, another one frees them: cycles of the frees
// Each prints, of the work alone, cycles and the counts of all its threads: NAME=VALUE ...
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/machine_simulated.hpp"

#include <pthread.h>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kLineBytes = 64, kCountersMax = 32;

std::array<std::atomic<std::uint64_t>, kCountersMax> sums;
std::atomic<std::uint64_t> longest{0};

// Counts what `work` does on the calling thread's core.
template <class Work>
void counted(Work work) {
  std::array<std::uint64_t, kCountersMax> before{};
  const std::size_t count = loam_simulator_counters();
  for (std::size_t i = 0; i < count; ++i) before[i] = loam_simulator_counter(i);
  const std::uint64_t began = loam_simulator_ticks();
  work();
  const std::uint64_t took = loam_simulator_ticks() - began;
  std::array<std::uint64_t, kCountersMax> after{};
  for (std::size_t i = 0; i < count; ++i) after[i] = loam_simulator_counter(i);
  for (std::size_t i = 0; i < count; ++i) sums[i] += after[i] - before[i];
  if (took > longest) longest = took;
}

void print() {
  std::printf("cycles=%llu", static_cast<unsigned long long>(longest.load()));
  for (std::size_t i = 0; i < loam_simulator_counters(); ++i)
    std::printf(" %s=%llu", loam_simulator_counter_name(i), static_cast<unsigned long long>(sums[i].load()));
  std::printf("\n");
}

// body(index) in each of `count` threads, thread i on core i, after all have begun.
void on_cores(unsigned count, const std::function<void(unsigned)>& body) {
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, count);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      loam::platform::pin_this_thread(i);
      pthread_barrier_wait(&barrier);
      counted([&] { body(i); });
    });
  for (auto& thread : threads) thread.join();
  pthread_barrier_destroy(&barrier);
}

[[gnu::noinline]] void** follow(void** at, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) at = static_cast<void**>(*at);
  return at;
}

void ladder(std::size_t bytes) {
  const std::size_t lines = bytes / kLineBytes;
  auto* const memory = static_cast<char*>(std::aligned_alloc(4096, bytes));
  std::vector<std::size_t> order(lines);
  for (std::size_t i = 0; i < lines; ++i) order[i] = i;
  std::mt19937_64 random(1);
  for (std::size_t i = lines; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (std::size_t i = 0; i < lines; ++i)
    *reinterpret_cast<void**>(memory + order[i] * kLineBytes) = memory + order[(i + 1) % lines] * kLineBytes;
  void** at = reinterpret_cast<void**>(memory + order[0] * kLineBytes);
  at = follow(at, 2 * lines);
  counted([&] { at = follow(at, lines); });
  std::printf("per_access=%.3f ", static_cast<double>(longest) / static_cast<double>(lines));
  if (at == nullptr) std::abort();
}

void ping_pong(std::uint64_t rounds) {
  alignas(kLineBytes) static std::atomic<std::uint64_t> flag{0};
  alignas(kLineBytes) static std::uint64_t word = 0;
  on_cores(2, [&](unsigned own) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      while (flag.load(std::memory_order_acquire) != 2 * round + own) loam::platform::pause();
      word += 1;
      flag.store(2 * round + own + 1, std::memory_order_release);
    }
  });
  if (word != 2 * rounds) std::abort();
}

void counters(std::size_t stride, std::uint64_t times) {
  alignas(4096) static char memory[8 * 4096];
  on_cores(8, [&](unsigned own) {
    auto& counter = *reinterpret_cast<volatile std::uint64_t*>(memory + own * stride);
    for (std::uint64_t i = 0; i < times; ++i) counter = counter + 1;
  });
}

void stores(unsigned cores, std::size_t stride, std::uint64_t times) {
  alignas(4096) static char memory[8 * 4096];
  on_cores(cores, [&](unsigned own) {
    auto& word = *reinterpret_cast<volatile std::uint64_t*>(memory + own * stride);
    for (std::uint64_t i = 0; i < times; ++i) word = i;
  });
}

void fetch_add(std::uint64_t times, unsigned cores) {
  alignas(kLineBytes) static std::atomic<std::uint64_t> counter{0};
  on_cores(cores, [&](unsigned) {
    for (std::uint64_t i = 0; i < times; ++i) counter.fetch_add(1, std::memory_order_relaxed);
  });
  if (counter != cores * times) std::abort();
}

void mixed(std::uint64_t times, unsigned cores) {
  constexpr std::size_t kWords = 8192;
  alignas(4096) static std::atomic<std::uint64_t> words[kWords];
  alignas(kLineBytes) static std::atomic<std::uint64_t> counter{0};
  on_cores(cores, [&](unsigned own) {
    std::uint64_t random = 88172645463325252u + own * 7919;
    for (std::uint64_t i = 0; i < times; ++i) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      auto& word = words[random % kWords];
      // relaxed: only the accesses count, not what they read.
      const std::uint64_t value = word.load(std::memory_order_relaxed);
      if (random >> 32 & 1) word.store(value + 1, std::memory_order_relaxed);
      if ((random >> 33 & 15) == 0) counter.fetch_add(1, std::memory_order_relaxed);
    }
  });
}

void read_shared(std::uint64_t times) {
  alignas(kLineBytes) static std::atomic<std::uint64_t> word{0};
  on_cores(8, [&](unsigned) {
    for (std::uint64_t i = 0; i < times; ++i)
      if (word.load(std::memory_order_relaxed) != 0) std::abort();
  });
}

// How long the core's clock ran.
template <class Work>
unsigned long long cycles_of(Work work) {
  const std::uint64_t began = loam_simulator_ticks();
  work();
  return loam_simulator_ticks() - began;
}

// Their addresses lie in this array, which is written before; so each call costs a store or a load of a hit as well.
constexpr std::size_t kBlocksMax = 64;
void* blocks[kBlocksMax];

void allocate_all(std::size_t bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) blocks[i] = std::malloc(bytes);
}
void free_all(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::free(blocks[i]);
}

void allocate(std::size_t bytes, std::size_t count) {
  allocate_all(bytes, count);
  free_all(count);
  const auto malloc = cycles_of([&] { allocate_all(bytes, count); }), free = cycles_of([&] { free_all(count); });
  std::printf("malloc=%llu free=%llu kind=%d ", malloc, free,
              std::string_view(loam_simulator_allocation()) == "counted: test 1.0");
}

[[gnu::noinline]] void free_and_print(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (blocks[i] == nullptr) std::abort();  // the array's lines come here
  std::printf("free=%llu ", cycles_of([=] { free_all(count); }));
}

void free_there(std::size_t bytes, std::size_t count) {
  allocate_all(bytes, count);
  std::thread(free_and_print, count).join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const auto number = [&](int place) { return argc > place ? std::strtoull(argv[place], nullptr, 10) : 0; };
  if (what == "ladder") {
    ladder(number(2));
  } else if (what == "ping-pong") {
    ping_pong(number(2));
  } else if (what == "counters") {
    counters(number(2), number(3));
  } else if (what == "stores") {
    stores(static_cast<unsigned>(number(2)), number(3), number(4));
  } else if (what == "fetch-add") {
    fetch_add(number(2), number(3) == 0 ? 8 : static_cast<unsigned>(number(3)));
  } else if (what == "mixed") {
    mixed(number(2), static_cast<unsigned>(number(3)));
  } else if (what == "read-shared") {
    read_shared(number(2));
  } else if (what == "allocate" && number(3) <= kBlocksMax) {
    allocate(number(2), number(3));
  } else if (what == "free-there" && number(3) <= kBlocksMax) {
    free_there(number(2), number(3));
  } else {
    return 2;
  }
  print();
  return 0;
}
