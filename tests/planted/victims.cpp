// victims: threads that share cache lines in a known way, or do not, so that `loam explain` can be checked against the truth.
//   usage: victims CASE TIMES [THREADS] [PERCENT]
//   CASE      false_blocks, two_places, apart, true, same_block, static, lock, private, mixed
//   TIMES     steps of each thread; or 30w, 9c: until the sampler (lab/interposer/sharing.cpp) has made 30 watches, or 9 of its
//             watches have caught a thread, so that a test waits for what it needs, however busy the machine is; THREADS: 2 unless named; PERCENT: of the steps that share, of `mixed`
//   Blocks    of 8 bytes, one after the other: what lies in one line is the allocator's doing.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Counter {
  volatile long n;
};

[[gnu::noinline]] Counter* make_counter() {
  auto* made = static_cast<Counter*>(std::malloc(sizeof(Counter)));
  made->n = 0;
  return made;
}

// By operator new, at two places.
[[gnu::noinline]] Counter* make_left() {
  auto* made = new Counter;
  made->n = 0;
  return made;
}
[[gnu::noinline]] Counter* make_right() {
  auto* made = new Counter;
  made->n = 1;
  return made;
}

[[gnu::noinline]] void bump(Counter* counter, long times) {
  for (long i = 0; i < times; ++i) counter->n = counter->n + 1;
}

[[gnu::noinline]] long private_work(long times) {
  std::vector<long> own(1 << 12);
  long sum = 0;
  for (long i = 0; i < times; ++i) {
    own[static_cast<unsigned long>(i) * 2654435761U % own.size()] += i;
    sum += own[static_cast<unsigned long>(i) % own.size()];
  }
  return sum;
}

std::atomic<long> one;
std::mutex mutex;
std::map<long, long> guarded;
volatile long neighbours[2];
Counter* whole;  // one block with a counter for each thread

void step(const char* what, Counter* const* counters, long thread, long times, long percent) {
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  volatile long sum = 0;
  if (is("false_blocks") || is("two_places")) {
    bump(counters[thread], times);
  } else if (is("apart")) {
    bump(counters[thread * 16], times);
  } else if (is("true")) {
    for (long i = 0; i < times; ++i) one.fetch_add(1, std::memory_order_relaxed);
  } else if (is("same_block")) {
    for (long i = 0; i < times; ++i) whole[thread].n = whole[thread].n + 1;
  } else if (is("lock")) {
    for (long i = 0; i < times; ++i) {
      const std::lock_guard<std::mutex> held(mutex);
      guarded[(i * 7 + thread) % 1000] = i;
    }
  } else if (is("static")) {
    for (long i = 0; i < times; ++i) neighbours[thread % 2] = neighbours[thread % 2] + 1;
  } else if (is("private")) {
    sum = sum + private_work(times);
  } else if (is("mixed")) {
    sum = sum + private_work(times * (100 - percent) / 100);
    bump(counters[thread], times * percent / 100);
  }
}

constexpr long kRounds = 200, kRoundSteps = 100'000;

// How long the threads go on. count: of the sampler, of what `unit` says
struct Goal {
  long times;
  char unit;
  unsigned long (*count)(char);

  bool reached(long rounds) const {
    return unit == '\0' ? rounds >= kRounds : count(unit) >= static_cast<unsigned long>(times);
  }
};

Goal goal_of(const char* text) {
  char* unit = nullptr;
  Goal goal{std::strtol(text, &unit, 10), *unit, nullptr};
  if (goal.unit == '\0') return goal;
  goal.count = reinterpret_cast<unsigned long (*)(char)>(dlsym(RTLD_DEFAULT, "loam_sharing_count"));
  if (goal.count == nullptr) std::fprintf(stderr, "victims: %s is for runs under the sampler\n", text), std::exit(2);
  return goal;
}

// A thread that has reached the goal goes on until all have: as long as the program runs, so do all of its threads.
std::atomic<long> finished;

void work(const char* what, Counter* const* counters, long thread, const Goal& goal, long percent, long threads) {
  bool reached = false;
  for (long round = 0; finished.load(std::memory_order_relaxed) < threads; ++round) {
    if (!reached && goal.reached(round)) reached = true, finished.fetch_add(1, std::memory_order_relaxed);
    step(what, counters, thread, goal.unit == '\0' ? goal.times / kRounds : kRoundSteps, percent);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: victims CASE TIMES [THREADS] [PERCENT]\n");
    return 2;
  }
  const Goal goal = goal_of(argv[2]);
  const long threads = argc > 3 ? std::atol(argv[3]) : 2, percent = argc > 4 ? std::atol(argv[4]) : 10;
  std::vector<Counter*> counters;
  const bool by_new = std::strcmp(argv[1], "two_places") == 0;
  for (long i = 0; i < threads * 16; ++i)
    counters.push_back(!by_new ? make_counter() : i % 2 == 0 ? make_left() : make_right());
  whole = new Counter[static_cast<unsigned char>(threads)]();
  std::vector<std::thread> running;
  for (long i = 0; i < threads; ++i)
    running.emplace_back([&, i] { work(argv[1], counters.data(), i, goal, percent, threads); });
  for (std::thread& thread : running) thread.join();
  for (Counter* counter : counters) by_new ? delete counter : std::free(counter);
  delete[] whole;
}
