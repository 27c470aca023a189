// weighted: two threads use five cache lines, the first half of the time, each next one half as often as the one before: the
// truth for how `loam selfcheck sharing --ranks` ranks lines. Runs on a simulated machine, too.
//   usage: weighted STEPS     steps of each thread
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

struct alignas(128) Line {
  std::atomic<long> word{0};
};
Line lines[5];

// Each line is known by the code that uses it.  The barrier keeps the simulator's hook from being jumped to: it would return to
// the caller, whose access it would seem to be.
#define LOAM_USE(name, number)                                  \
  [[gnu::noinline]] void name() {                               \
    lines[number].word.fetch_add(1, std::memory_order_relaxed); \
    asm volatile("" ::: "memory");                              \
  }
LOAM_USE(use_first, 0)
LOAM_USE(use_second, 1)
LOAM_USE(use_third, 2)
LOAM_USE(use_fourth, 3)
LOAM_USE(use_fifth, 4)

void work(unsigned long random, long steps) {
  for (long step = 0; step < steps; ++step) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const unsigned long chosen = random % 31;
    if (chosen < 16)
      use_first();
    else if (chosen < 24)
      use_second();
    else if (chosen < 28)
      use_third();
    else if (chosen < 30)
      use_fourth();
    else
      use_fifth();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 0;
  if (steps <= 0) return std::fprintf(stderr, "usage: weighted STEPS\n"), 2;
  std::thread other(work, 88172645463325252UL, steps);
  work(6364136223846793005UL, steps);
  other.join();
  long sum = 0;
  for (const Line& line : lines) sum += line.word.load(std::memory_order_relaxed);
  return sum == 2 * steps ? 0 : 1;
}
