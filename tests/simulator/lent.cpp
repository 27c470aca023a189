// Allocation in hardware transactions on a simulated machine, with a malloc that lends stocks or does not.
//   hybrid|elided made|held BYTES COUNT TIMES THREADS
//       Each thread runs TIMES transactions that write the first word of COUNT blocks of BYTES. made: the transaction
//       allocates the blocks, and a second one frees them. held: the thread allocated them before, so the transaction
//       does the same without allocation.
//       Prints, of the first kind of transaction: commits=, hardware=, provided= (aborts so that a stock is filled); of
//       all: aborts=, wrong= (blocks that do not hold what was written), lends= (whether malloc lends stocks).
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/machine_simulated.hpp"
#include "runtime/platform/stock.hpp"
#include "runtime/tm/hardware/elision.hpp"
#include "runtime/tm/hardware/hybrid.hpp"
#include "runtime/tm/tm.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace loam;

struct Plan {
  bool makes;
  std::size_t bytes, count;
  std::uint64_t times;
};

struct alignas(128) Counts {
  std::uint64_t commits = 0, hardware = 0, provided = 0, aborts = 0, wrong = 0;
};

struct InHybrid {
  static tm::Statistics counted() { return tm::statistics(); }
  template <class F>
  static void run(F&& f) {
    tm::hardware::Hybrid::update([&f](auto tx) {
      f(tx);
      return 0;
    });
  }
  static void end_thread() { tm::thread_exit(); }
};

struct InElided {
  struct Access {
    tm::hardware::Section* section;
    void* allocate(std::size_t bytes) const { return section->allocate(bytes); }
    void release(void* block) const { section->release(block); }
    void write(std::int64_t& word, std::int64_t value) const { word = value; }
  };

  static tm::Statistics counted() { return statistics; }
  template <class F>
  static void run(F&& f) {
    tm::hardware::elide(lock, statistics, memory, [&f](tm::hardware::Section& section) {
      f(Access{&section});
      return 0;
    });
  }
  static void end_thread() { memory.end_thread(); }

  static inline constinit tm::hardware::FallbackLock lock;
  static inline thread_local constinit tm::hardware::ElidedMemory memory;
  alignas(128) static inline thread_local constinit tm::Statistics statistics;
};

template <class Way>
void work(const Plan& plan, Counts& counts) {
  const auto provided = [](const tm::Statistics& statistics) {
    return statistics.aborts[static_cast<std::size_t>(tm::AbortCause::reprovision)];
  };
  std::vector<std::int64_t*> blocks(plan.count);
  if (!plan.makes)
    for (auto& block : blocks) block = static_cast<std::int64_t*>(std::malloc(plan.bytes));
  Way::run([](auto) {});  // attaches the thread
  for (std::uint64_t time = 1; time <= plan.times; ++time) {
    const auto value = [time](std::size_t i) { return static_cast<std::int64_t>(time << 20 | i); };
    const tm::Statistics begun = Way::counted();
    Way::run([&](auto tx) {
      for (std::size_t i = 0; i < plan.count; ++i) {
        if (plan.makes) blocks[i] = static_cast<std::int64_t*>(tx.allocate(plan.bytes));
        tx.write(*blocks[i], value(i));
      }
    });
    const tm::Statistics made = Way::counted();
    for (std::size_t i = 0; i < plan.count; ++i) counts.wrong += *blocks[i] == value(i) ? 0 : 1;
    if (plan.makes)
      Way::run([&](auto tx) {
        for (std::int64_t* const block : blocks) tx.release(block);
      });
    counts.commits += made.commits - begun.commits;
    counts.hardware += made.hardware - begun.hardware;
    counts.provided += provided(made) - provided(begun);
    counts.aborts += Way::counted().aborts_total() - begun.aborts_total();
  }
  Way::end_thread();
}

template <class Way>
Counts on_threads(const Plan& plan, unsigned count) {
  std::vector<Counts> all(count);
  std::vector<std::thread> threads;
  for (unsigned place = 0; place < count; ++place)
    threads.emplace_back([&plan, &all, place] {
      platform::pin_this_thread(place);
      work<Way>(plan, all[place]);
    });
  for (auto& thread : threads) thread.join();
  Counts sum;
  for (const Counts& one : all) {
    sum.commits += one.commits;
    sum.hardware += one.hardware;
    sum.provided += one.provided;
    sum.aborts += one.aborts;
    sum.wrong += one.wrong;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const auto number = [argv](int place) { return std::strtoull(argv[place], nullptr, 10); };
  const std::string_view way = argv[1], kind = argv[2];
  const Plan plan{kind == "made", number(3), number(4), number(5)};
  const auto threads = static_cast<unsigned>(number(6));
  tm::configure_once();
  const Counts found = way == "hybrid" ? on_threads<InHybrid>(plan, threads) : on_threads<InElided>(plan, threads);
  const auto shown = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf("commits=%llu hardware=%llu provided=%llu aborts=%llu wrong=%llu lends=%d\n", shown(found.commits),
              shown(found.hardware), shown(found.provided), shown(found.aborts), shown(found.wrong),
              loam_malloc_lend != nullptr ? 1 : 0);
  return 0;
}
