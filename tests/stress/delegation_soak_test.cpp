// Every queue under every scheme for long: no element lost, doubled, or out of its thread's order.
//   Queues: sequential with one object, with two (head and tail), with a lock at each end, lock-free with hazard pointers
//   and with epochs.
//   10^6 operations each, fewer where threads of this test outnumber processors and do not sleep, and under sanitizers.
//   LOAM_SOAK_OPERATIONS in the environment: how many, for example 1000000000 with LOAM_TEST_SECONDS=0; --gtest_filter
//   takes one of them. It is done in parts (soak_parts.hpp): each is verified, and LOAM_SOAK_FOLDER=FOLDER keeps what was
//   done, so that the same command goes on after a kill.
#include "runtime/delegation/schemes.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "structures/by_epochs.hpp"
#include "structures/by_hazards.hpp"
#include "structures/lock_free_queue.hpp"
#include "structures/ordered_access.hpp"
#include "structures/queue.hpp"
#include "tests/harness/soak_parts.hpp"
#include "tests/harness/watchdog.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace loam::delegation {
namespace {

#ifdef LOAM_INSTRUMENTED
constexpr std::uint64_t kOperations = 20'000;
#else
constexpr std::uint64_t kOperations = 1'000'000;
#endif
constexpr unsigned kThreads = 3;
constexpr unsigned kThreadShift = 48;
constexpr std::int64_t kNone = -1;

// slow: what does not sleep, or has a server beside these threads, where they outnumber processors
std::uint64_t operations(bool slow) {
  const char* const given = std::getenv("LOAM_SOAK_OPERATIONS");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return kOperations / (slow && std::thread::hardware_concurrency() <= kThreads ? 10 : 1);
}

// Queue: put(value), take() (kNone: empty), elements() at rest, thread_exit(), held_back() when all threads have ended.
template <class Queue>
void soak_part(Queue& queue, std::uint64_t count) {
  std::atomic<std::uint64_t> wrong{0}, sum{0};
  std::vector<std::thread> threads;
  const std::uint64_t each = std::max<std::uint64_t>(1, count / kThreads / 2);
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::uint64_t last[kThreads] = {}, mine = 0, mistakes = 0;
      for (std::uint64_t i = 1; i <= each; ++i) {
        const auto in = static_cast<std::int64_t>(std::uint64_t{t} << kThreadShift | i);
        queue.put(in);
        const std::int64_t out = queue.take();
        const auto from = static_cast<std::uint64_t>(out) >> kThreadShift,
                   number = static_cast<std::uint64_t>(out) & ((std::uint64_t{1} << kThreadShift) - 1);
        if (out < 0 || from >= kThreads || number <= last[from])
          ++mistakes;
        else
          last[from] = number;
        mine += static_cast<std::uint64_t>(in) - static_cast<std::uint64_t>(out);
      }
      wrong += mistakes;
      sum += mine;
      Queue::thread_exit();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(sum, 0U) << "what came in went out";
  EXPECT_EQ(queue.elements(), 0U);
  EXPECT_EQ(Queue::held_back(), 0U);
}

template <class Queue>
void soak(Queue& queue, const std::string& name, std::uint64_t count) {
  for (tests::SoakParts parts(name, count); const std::uint64_t part = parts.next(); parts.verified()) {
    soak_part(queue, part);
    if (testing::Test::HasFailure()) return;
  }
}

// Head and tail are of the same object of a scheme, or of one each.
template <class Scheme>
class Delegated {
 public:
  explicit Delegated(bool two) {
    if (two) head_.emplace(Settings{});
  }

  void put(std::int64_t value) {
    tail_.apply([this, value] {
      structures::OrderedAccess access;
      queue_.enqueue(access, value);
    });
  }
  std::int64_t take() {
    Scheme& head = head_ ? *head_ : tail_;
    return head.apply([this] {
      structures::OrderedAccess access;
      std::int64_t value = kNone;
      queue_.dequeue(access, value);
      return value;
    });
  }
  std::size_t elements() const { return queue_.verify().elements; }
  static void thread_exit() {}
  static std::size_t held_back() { return 0; }

 private:
  structures::Queue queue_;
  Scheme tail_{Settings{}};
  std::optional<Scheme> head_;
};

class TwoLocks {
 public:
  static constexpr const char* kName = "two_locks";

  void put(std::int64_t value) {
    structures::OrderedAccess access;
    const std::lock_guard guard(tail_);
    queue_.enqueue(access, value);
  }
  std::int64_t take() {
    structures::OrderedAccess access;
    std::int64_t value = kNone;
    const std::lock_guard guard(head_);
    queue_.dequeue(access, value);
    return value;
  }
  std::size_t elements() const { return queue_.verify().elements; }
  static void thread_exit() {}
  static std::size_t held_back() { return 0; }

 private:
  structures::Queue queue_;
  alignas(platform::kApartBytes) sync::SpinLock head_;
  alignas(platform::kApartBytes) sync::SpinLock tail_;
};

template <class Reclaimer>
class LockFree {
 public:
  static constexpr const char* kName = std::is_same_v<Reclaimer, structures::ByEpochs> ? "by_epochs" : "by_hazards";

  void put(std::int64_t value) { queue_.enqueue(value); }
  std::int64_t take() {
    std::int64_t value = kNone;
    queue_.dequeue(value);
    return value;
  }
  std::size_t elements() const { return queue_.verify().elements; }
  static void thread_exit() { Reclaimer::thread_exit(); }
  // Frees what a leaving thread could not, since another one still named it.
  static std::size_t held_back() { return Reclaimer::quiesce(); }

 private:
  structures::LockFreeQueue<Reclaimer> queue_;
};

// A scheme's name, and whether head and tail are two objects.
struct Case {
  std::string_view scheme;
  bool two;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  Schemes::for_each([&]<template <class> class SchemeOf>() {
    for (const bool two : {false, true}) all.push_back({SchemeOf<SpinThenSleep>::kDescription.name, two});
  });
  return all;
}
std::string name_of(const Case& one) {
  std::string name(one.scheme);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + (one.two ? "_two" : "_one");
}

class DelegationSoak : public testing::TestWithParam<Case> {};

TEST_P(DelegationSoak, NothingIsLostDoubledOrOutOfOrder) {
  tests::may_take(120);
  Schemes::for_each([&]<template <class> class SchemeOf>() {
    using Scheme = SchemeOf<SpinThenSleep>;
    if (Scheme::kDescription.name != GetParam().scheme) return;
    Delegated<Scheme> queue(GetParam().two);
    soak(queue, name_of(GetParam()), operations(!Scheme::kSleeps || Scheme::kDescription.means == Means::server));
  });
}
INSTANTIATE_TEST_SUITE_P(Queue, DelegationSoak, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& info) { return name_of(info.param); });

template <class Queue>
struct QueueSoak : testing::Test {};
using Queues = testing::Types<TwoLocks, LockFree<structures::ByHazards>, LockFree<structures::ByEpochs>>;
TYPED_TEST_SUITE(QueueSoak, Queues);

TYPED_TEST(QueueSoak, NothingIsLostDoubledOrOutOfOrder) {
  TypeParam queue;
  soak(queue, TypeParam::kName, operations(false));
}

TEST(SoakParts, GoOnWhereTheyStopped) {
  std::string folder = testing::TempDir() + "loam-soak-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    tests::SoakParts first("one", 25, 10, folder);
    EXPECT_EQ(first.next(), 10U);
    first.verified();
    EXPECT_EQ(first.next(), 10U);  // begun, and interrupted
  }
  tests::SoakParts again("one", 25, 10, folder), other("other", 25, 10, folder);
  EXPECT_EQ(other.done(), 0U);
  EXPECT_EQ(again.done(), 10U);
  again.verified();
  EXPECT_EQ(again.next(), 5U) << "the last part is what is left";
  again.verified();
  EXPECT_EQ(again.next(), 0U);
  EXPECT_EQ(tests::SoakParts("one", 25, 10, folder).next(), 0U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace loam::delegation
