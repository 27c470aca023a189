// Litmus tests under the schedule checker (LOAM_SIM_CHECK=exhaustive): each prints what its threads saw, and the checker says
// which of these it found in all executions. tests/lab/simulator/test_exhaustive.py knows which C++20 allows.
//   litmus NAME ORDER      ORDER: relaxed, release (and acquire), seq_cst. In fenced-store-buffering it is the order of
//                          one of the two fences
#include <atomic>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <thread>

namespace {

using std::memory_order_acquire, std::memory_order_relaxed, std::memory_order_release, std::memory_order_seq_cst;

template <std::memory_order kStore>
inline constexpr auto kLoad = kStore == memory_order_release ? memory_order_acquire : kStore;

template <class... Bodies>
void together(Bodies... bodies) {
  std::thread threads[] = {std::thread(bodies)...};
  for (auto& thread : threads) thread.join();
}

std::atomic<int> x{0}, y{0};
int seen[4];

template <class... Values>
void print(Values... values) {
  (std::printf("%d ", values), ...);
  std::putchar('\n');
}

// x = 1; a = y   beside   y = 1; b = x
template <std::memory_order kStore>
void store_buffering() {
  together([] { x.store(1, kStore), seen[0] = y.load(kLoad<kStore>); },
           [] { y.store(1, kStore), seen[1] = x.load(kLoad<kStore>); });
  print(seen[0], seen[1]);
}

// x = 1; fence; a = y   beside   y = 1; fence; b = x
template <std::memory_order kFence>
void fenced_store_buffering() {
  together(
      [] {
        x.store(1, memory_order_relaxed);
        std::atomic_thread_fence(kFence);
        seen[0] = y.load(memory_order_relaxed);
      },
      [] {
        y.store(1, memory_order_relaxed);
        std::atomic_thread_fence(memory_order_seq_cst);
        seen[1] = x.load(memory_order_relaxed);
      });
  print(seen[0], seen[1]);
}

// x = 1; y = 1   beside   a = y; b = x
template <std::memory_order kStore>
void message_passing() {
  together([] { x.store(1, memory_order_relaxed), y.store(1, kStore); },
           [] { seen[0] = y.load(kLoad<kStore>), seen[1] = x.load(memory_order_relaxed); });
  print(seen[0], seen[1]);
}

// a = y; x = 1   beside   b = x; y = 1
template <std::memory_order kStore>
void load_buffering() {
  together([] { seen[0] = y.load(kLoad<kStore>), x.store(1, kStore); },
           [] { seen[1] = x.load(kLoad<kStore>), y.store(1, kStore); });
  print(seen[0], seen[1]);
}

// x = 1; x = 2   beside   a = x; b = x
template <std::memory_order kStore>
void coherence() {
  together([] { x.store(1, kStore), x.store(2, kStore); },
           [] { seen[0] = x.load(kLoad<kStore>), seen[1] = x.load(kLoad<kStore>); });
  print(seen[0], seen[1]);
}

// Two that write, two that read both in opposite orders.
template <std::memory_order kStore>
void independent_reads() {
  together([] { x.store(1, kStore); }, [] { y.store(1, kStore); },
           [] { seen[0] = x.load(kLoad<kStore>), seen[1] = y.load(kLoad<kStore>); },
           [] { seen[2] = y.load(kLoad<kStore>), seen[3] = x.load(kLoad<kStore>); });
  print(seen[0], seen[1], seen[2], seen[3]);
}

// x = 1 before there is another thread, then two that read it.
template <std::memory_order kStore>
void first_store() {
  x.store(1, kStore);
  together([] { seen[0] = x.load(kLoad<kStore>); }, [] { seen[1] = x.load(kLoad<kStore>); });
  print(seen[0], seen[1]);
}

// Two that add: planted, a load and a store in place of one read-modify-write.
template <std::memory_order kStore>
void lost_update() {
  const auto add = [] { x.store(x.load(kLoad<kStore>) + 1, kStore); };
  together(add, add);
  print(x.load(memory_order_relaxed));
}
template <std::memory_order kStore>
void update() {
  const auto add = [] { x.fetch_add(1, kStore); };
  together(add, add);
  print(x.load(memory_order_relaxed));
}

// One waits in a loop for the other, which may see that it does.
template <std::memory_order kStore>
void waiting() {
  together([] { x.store(1, kStore), seen[0] = y.load(kLoad<kStore>); },
           [] {
             y.store(1, kStore);
             while (x.load(kLoad<kStore>) == 0) {
             }
           });
  print(seen[0]);
}

// One looks twice for what does not come, and gives up; the other one looks twice whether it did.
template <std::memory_order kStore>
void giving_up() {
  together([] { seen[0] = y.load(kLoad<kStore>), seen[1] = y.load(kLoad<kStore>); },
           [] {
             for (int looks = 0; looks < 2 && x.load(kLoad<kStore>) == 0;) ++looks;
             y.store(1, kStore);
           });
  print(seen[0], seen[1]);
}

struct Test {
  std::string_view name;
  void (*run[3])();
};
constexpr std::string_view kOrders[] = {"relaxed", "release", "seq_cst"};
#define LOAM_IN_ALL_ORDERS(test) {test<memory_order_relaxed>, test<memory_order_release>, test<memory_order_seq_cst>}
constexpr Test kTests[] = {
    {"store-buffering", LOAM_IN_ALL_ORDERS(store_buffering)},
    {"fenced-store-buffering", LOAM_IN_ALL_ORDERS(fenced_store_buffering)},
    {"message-passing", LOAM_IN_ALL_ORDERS(message_passing)},
    {"load-buffering", LOAM_IN_ALL_ORDERS(load_buffering)},
    {"coherence", LOAM_IN_ALL_ORDERS(coherence)},
    {"independent-reads", LOAM_IN_ALL_ORDERS(independent_reads)},
    {"first-store", LOAM_IN_ALL_ORDERS(first_store)},
    {"lost-update", LOAM_IN_ALL_ORDERS(lost_update)},
    {"update", LOAM_IN_ALL_ORDERS(update)},
    {"waiting", LOAM_IN_ALL_ORDERS(waiting)},
    {"giving-up", LOAM_IN_ALL_ORDERS(giving_up)},
};

}  // namespace

int main(int count, char** words) {
  if (count == 3)
    for (const Test& test : kTests)
      for (unsigned order = 0; order < std::size(kOrders); ++order)
        if (test.name == words[1] && kOrders[order] == words[2]) {
          test.run[order]();
          return 0;
        }
  for (const Test& test : kTests) std::printf("%s\n", test.name.data());
  return 2;
}
