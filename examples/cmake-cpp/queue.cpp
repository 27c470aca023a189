// queue: producers and consumers over a bounded queue. Who finds it full, or empty, retries: its thread sleeps until
// somebody has changed what it read. No condition variable, no lost wake-up.
#include <loam/tm.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

namespace tx = loam::tm;

namespace {

template <class T, std::size_t kCapacity>
class Queue {
 public:
  void push(T value) {
    tx::atomically([&](auto& t) {
      const std::uint64_t end = t.read(end_);
      if (end - t.read(begin_) == kCapacity) tx::retry(t);
      t.write(ring_[end % kCapacity], value);
      t.write(end_, end + 1);
    });
  }

  T pop() {
    return tx::atomically([&](auto& t) { return pop_in(t); });
  }

  // The first element of either queue, whichever has one.
  static T pop_of_two(Queue& first, Queue& second) {
    return tx::atomically([&](auto& t) {
      T value{};
      tx::or_else(t, [&](auto& part) { value = first.pop_in(part); }, [&](auto& part) { value = second.pop_in(part); });
      return value;
    });
  }

 private:
  template <class Tx>
  T pop_in(Tx& t) {
    const std::uint64_t begin = t.read(begin_);
    if (begin == t.read(end_)) tx::retry(t);
    t.write(begin_, begin + 1);
    return t.read(ring_[begin % kCapacity]);
  }

  std::uint64_t begin_ = 0, end_ = 0;
  std::array<T, kCapacity> ring_{};
};

constexpr std::int64_t kItems = 5000, kStop = -1;
Queue<std::int64_t, 8> urgent, ordinary;

}  // namespace

int main() {
  std::atomic<std::int64_t> sum{0}, taken{0};
  std::vector<std::thread> consumers;
  for (int c = 0; c < 2; ++c)
    consumers.emplace_back([&] {
      for (std::int64_t item; (item = decltype(urgent)::pop_of_two(urgent, ordinary)) != kStop;) sum += item, ++taken;
    });
  std::thread producer_of_urgent([] {
    for (std::int64_t i = 1; i <= kItems; ++i) urgent.push(i);
  });
  std::thread producer([] {
    for (std::int64_t i = 1; i <= kItems; ++i) ordinary.push(i);
  });
  producer_of_urgent.join();
  producer.join();
  for (std::size_t c = 0; c < consumers.size(); ++c) ordinary.push(kStop);
  for (std::thread& consumer : consumers) consumer.join();

  std::printf("items %lld, sum %lld\n", static_cast<long long>(taken.load()), static_cast<long long>(sum.load()));
  return taken == 2 * kItems && sum == kItems * (kItems + 1) ? 0 : 1;
}
