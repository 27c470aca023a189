// sharers: threads that share a cache line of a known kind for a known share of their time: the truth for `loam selfcheck sharing`.
//   usage: sharers KIND PERCENT THREADS SECONDS BURST_US
//   KIND      blocks, same_block, lock, atomic, data, static, stack, nothing
//   PERCENT   of the time, in bursts of BURST_US by the clock that all threads have in common: then all use the line, and else
//             none does. A thread uses the line many times in 20 us meanwhile, so that each watch there can catch another one.
//   THREADS   2 to 8: a word of the line for each
//   Output    on standard error, the share of their time that the threads used the line for, as they measured it, without what
//             it takes to look at the clock: less than PERCENT, or more where a step takes long
//   Blocks    of 8 bytes; those of `blocks` are searched for two threads in one line, and the program ends with status 3 where
//             the allocator never places two so.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kSteps = 256;  // between looks at the clock, each of which takes as long as some of them
constexpr long kThreadsMax = 8;

struct Block {
  volatile long n;
};

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// How long a look at the clock takes.
std::int64_t look_ns() {
  constexpr std::int64_t kLooks = 10'000;
  const std::int64_t begin = now_ns();
  for (std::int64_t n = 1; n < kLooks; ++n) now_ns();
  return (now_ns() - begin) / kLooks;
}

[[gnu::noinline]] Block* make_block() {
  auto* made = static_cast<Block*>(std::malloc(sizeof(Block)));
  made->n = 0;
  return made;
}

alignas(64) volatile long neighbours[8];
alignas(64) std::atomic<long> counter;
alignas(64) volatile long word;
// A spin lock: who waits for a mutex sleeps, and shares nothing meanwhile.
alignas(64) std::atomic<bool> locked;
alignas(64) volatile long guarded;

[[gnu::noinline]] void use(volatile long* mine) {
  for (int i = 0; i < kSteps; ++i) *mine = *mine + 1;
}
[[gnu::noinline]] void count() {
  // relaxed: a counter; nothing is ordered by it.
  for (int i = 0; i < kSteps; ++i) counter.fetch_add(1, std::memory_order_relaxed);
}
[[gnu::noinline]] void lock() {
  for (int i = 0; i < kSteps; ++i) {
    // acquire: pairs with the release below: what the last holder wrote is there.  relaxed: a look, until it may succeed.
    while (locked.exchange(true, std::memory_order_acquire))
      while (locked.load(std::memory_order_relaxed)) continue;
    guarded = guarded + 1;
    locked.store(false, std::memory_order_release);
  }
}

// Works until `end`, and uses the line for the first `burst_ns` of each period. returns for how many ns it used the line
std::int64_t work(const char* kind, volatile long* mine, std::int64_t burst_ns, std::int64_t period_ns,
                  std::int64_t end) {
  std::vector<long> own(1 << 10);
  const auto is = [kind](const char* name) { return std::strcmp(kind, name) == 0; };
  const bool counts = is("atomic"), locks = is("lock");
  const std::int64_t look = look_ns();
  std::int64_t used = 0;
  for (std::int64_t now = now_ns(), next = 0; now < end; now = next) {
    const bool uses = mine != nullptr && now % period_ns < burst_ns;
    if (uses) {
      if (counts)
        count();
      else if (locks)
        lock();
      else
        use(mine);
    } else {
      for (std::size_t i = 0; i < kSteps; ++i) own[static_cast<std::size_t>(now) * 31 % 512 + i] += now;
    }
    next = now_ns();
    if (uses) used += next - now - look;
  }
  return used;
}

// Blocks of which each lies in one line with another.
std::vector<volatile long*> in_shared_lines(long threads) {
  std::vector<Block*> all;
  for (int i = 0; i < 4096; ++i) all.push_back(make_block());
  const auto line = [](const Block* block) { return reinterpret_cast<std::uintptr_t>(block) / 64; };
  std::vector<volatile long*> found;
  for (std::size_t i = 0; i + 1 < all.size() && found.size() < static_cast<std::size_t>(threads); ++i) {
    if (line(all[i]) != line(all[i + 1])) continue;
    found.push_back(&all[i]->n), found.push_back(&all[i + 1]->n);
    ++i;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: sharers KIND PERCENT THREADS SECONDS BURST_US\n");
    return 2;
  }
  const char* kind = argv[1];
  const long threads = std::atol(argv[3]);
  if (threads < 2 || threads > kThreadsMax) {
    std::fprintf(stderr, "sharers: THREADS=%s; from 2 to %ld\n", argv[3], kThreadsMax);
    return 2;
  }
  const long percent = std::atol(argv[2]), burst_us = std::atol(argv[5]);
  if (percent < 0 || percent > 100 || burst_us < 1) {
    std::fprintf(stderr, "sharers: PERCENT=%s BURST_US=%s; from 0 to 100, and 1 or more\n", argv[2], argv[5]);
    return 2;
  }
  const std::int64_t burst_ns = percent == 0 ? 0 : burst_us * std::int64_t{1000};
  const std::int64_t period_ns = std::max<std::int64_t>(burst_ns, 1) * 100 / std::max(percent, 1L);
  const auto count = static_cast<std::size_t>(threads);
  alignas(64) volatile long on_stack[8] = {};
  std::vector<volatile long*> mine(count, nullptr);
  const auto is = [kind](const char* name) { return std::strcmp(kind, name) == 0; };
  auto* const whole = static_cast<long*>(std::aligned_alloc(64, 64));
  if (is("blocks")) {
    mine = in_shared_lines(threads);
    if (mine.size() < count) return std::fputs("sharers: no two blocks in one line\n", stderr), 3;
  } else if (!is("nothing")) {
    for (std::size_t n = 0; n < mine.size(); ++n)
      mine[n] = is("same_block") ? &whole[n] : is("static") ? &neighbours[n] : is("stack") ? &on_stack[n] : &word;
  }
  const std::int64_t begin = now_ns();
  const std::int64_t end = begin + static_cast<std::int64_t>(std::atof(argv[4]) * 1e9);
  std::vector<std::int64_t> used(count);
  std::vector<std::thread> running;
  for (std::size_t n = 0; n < count; ++n)
    running.emplace_back([&, n] { used[n] = work(kind, mine[n], burst_ns, period_ns, end); });
  for (std::thread& thread : running) thread.join();
  double all = 0;
  for (const std::int64_t ns : used) all += static_cast<double>(ns);
  std::fprintf(stderr, "sharers: %.4f of the time\n", all / static_cast<double>((now_ns() - begin) * threads));
  std::free(whole);
}
