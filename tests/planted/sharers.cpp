// sharers: threads that share a cache line of a known kind for a known share of their time: the truth for `loam selfcheck sharing`.
//   usage: sharers KIND PERCENT THREADS SECONDS
//   KIND      blocks, same_block, lock, atomic, data, static, stack, nothing
//   PERCENT   of each millisecond, by the clock that all threads have in common: then all use the line, and else none does.
//             A thread uses the line many times in 20 us meanwhile, so that each watch of 200 us there can catch another one.
//   Blocks    of 8 bytes; those of `blocks` are searched for two threads in one line, and the program ends with status 3 where
//             the allocator never places two so.
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr std::int64_t kPeriodNs = 1'000'000;
constexpr int kSteps = 32;  // between looks at the clock: less than a microsecond

struct Block {
  volatile long n;
};

std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

[[gnu::noinline]] Block* make_block() {
  auto* made = static_cast<Block*>(std::malloc(sizeof(Block)));
  made->n = 0;
  return made;
}

alignas(64) volatile long neighbours[8];
alignas(64) std::atomic<long> counter;
alignas(64) volatile long word;
std::mutex mutex;
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
    const std::lock_guard<std::mutex> held(mutex);
    guarded = guarded + 1;
  }
}

void work(const char* kind, volatile long* mine, std::int64_t percent, std::int64_t end) {
  std::vector<long> own(1 << 10);
  const auto is = [kind](const char* name) { return std::strcmp(kind, name) == 0; };
  const bool counts = is("atomic"), locks = is("lock");
  for (std::int64_t now = now_ns(); now < end; now = now_ns()) {
    if (mine != nullptr && now % kPeriodNs < kPeriodNs / 100 * percent) {
      if (counts)
        count();
      else if (locks)
        lock();
      else
        use(mine);
    } else {
      for (std::size_t i = 0; i < kSteps; ++i) own[static_cast<std::size_t>(now) * 31 % 512 + i] += now;
    }
  }
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
  if (argc != 5) {
    std::fprintf(stderr, "usage: sharers KIND PERCENT THREADS SECONDS\n");
    return 2;
  }
  const char* kind = argv[1];
  const long threads = std::atol(argv[3]);
  volatile long on_stack[8] = {};
  std::vector<volatile long*> mine(static_cast<unsigned char>(threads), nullptr);
  const auto is = [kind](const char* name) { return std::strcmp(kind, name) == 0; };
  auto* whole = new long[8]();
  if (is("blocks")) {
    mine = in_shared_lines(threads);
    if (mine.size() < static_cast<std::size_t>(threads))
      return std::fputs("sharers: no two blocks in one line\n", stderr), 3;
  } else if (!is("nothing")) {
    for (std::size_t n = 0; n < mine.size(); ++n)
      mine[n] = is("same_block") ? &whole[n % 2]
                : is("static")   ? &neighbours[n % 8]
                : is("stack")    ? &on_stack[n % 2]
                                 : &word;
  }
  const std::int64_t end = now_ns() + static_cast<std::int64_t>(std::atof(argv[4]) * 1e9);
  std::vector<std::thread> running;
  for (long n = 0; n < threads; ++n)
    running.emplace_back(work, kind, mine[static_cast<std::size_t>(n)], std::atol(argv[2]), end);
  for (std::thread& thread : running) thread.join();
  delete[] whole;
}
