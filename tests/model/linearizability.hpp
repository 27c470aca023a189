// Whether a history of calls on one object could have happened one call at a time: each between its begin and its end.
//   Source  Wing, Gong: "Testing and verifying concurrent objects", JPDC 1993: a search over which call comes next, among
//           those that began before any other one ended; states that were reached before are not searched again (Lowe).
//   Cost    exponential in the calls that overlap; histories of some dozen calls take microseconds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace loam::model {

struct CallRecord {
  int operation;  // of the model
  std::int64_t argument, result;
  std::uint64_t began, ended;  // of one clock for all threads
};

// A clock whose order is that of the calls in real time.
class CallClock {
 public:
  // seq_cst: a call that ends before another one begins has the smaller number, on whichever thread.
  std::uint64_t tick() noexcept { return now_.fetch_add(1, std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint64_t> now_{1};
};

// Model: a value type with `std::int64_t apply(int operation, std::int64_t argument)` and operator<.
template <class Model>
class Linearizability {
 public:
  explicit Linearizability(std::span<const CallRecord> calls) : calls_(calls.begin(), calls.end()) {
    std::sort(calls_.begin(), calls_.end(), [](const auto& a, const auto& b) { return a.began < b.began; });
  }

  bool holds() { return calls_.size() <= 64 && search(0, Model{}); }

 private:
  bool search(std::uint64_t done, const Model& state) {
    if (done == (calls_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << calls_.size()) - 1)) return true;
    if (!seen_.emplace(done, state).second) return false;
    std::uint64_t first_end = ~std::uint64_t{0};
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if ((done >> i & 1) == 0) first_end = std::min(first_end, calls_[i].ended);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) != 0 || calls_[i].began > first_end) continue;
      Model next = state;
      if (next.apply(calls_[i].operation, calls_[i].argument) != calls_[i].result) continue;
      if (search(done | std::uint64_t{1} << i, next)) return true;
    }
    return false;
  }

  std::vector<CallRecord> calls_;
  std::set<std::pair<std::uint64_t, Model>> seen_;
};

// Calls that overlapped another one.
inline std::size_t overlapping(std::span<const CallRecord> calls) {
  std::size_t count = 0;
  for (const auto& a : calls)
    count += std::any_of(calls.begin(), calls.end(),
                         [&a](const auto& b) { return &a != &b && a.began < b.ended && b.began < a.ended; });
  return count;
}

inline constexpr std::int64_t kNothing = -1;

struct QueueModel {
  enum Operation { kEnqueue, kDequeue };
  static constexpr int kOperations = 2;

  std::int64_t apply(int operation, std::int64_t argument) {
    if (operation == kEnqueue) {
      elements.push_back(argument);
      return 0;
    }
    if (elements.empty()) return kNothing;
    const std::int64_t first = elements.front();
    elements.pop_front();
    return first;
  }
  bool operator<(const QueueModel& other) const { return elements < other.elements; }

  std::deque<std::int64_t> elements;
};

struct StackModel {
  enum Operation { kPush, kPop };
  static constexpr int kOperations = 2;

  std::int64_t apply(int operation, std::int64_t argument) {
    if (operation == kPush) {
      elements.push_back(argument);
      return 0;
    }
    if (elements.empty()) return kNothing;
    const std::int64_t newest = elements.back();
    elements.pop_back();
    return newest;
  }
  bool operator<(const StackModel& other) const { return elements < other.elements; }

  std::vector<std::int64_t> elements;
};

// Of a few keys: a call's argument says which.
struct SetModel {
  enum Operation { kInsert, kRemove, kContains };
  static constexpr int kOperations = 3;
  static constexpr std::int64_t key_of(std::int64_t argument) { return argument % 3; }

  std::int64_t apply(int operation, std::int64_t argument) {
    if (operation == kInsert) return elements.insert(key_of(argument)).second;
    if (operation == kRemove) return static_cast<std::int64_t>(elements.erase(key_of(argument)));
    return elements.contains(key_of(argument));
  }
  bool operator<(const SetModel& other) const { return elements < other.elements; }

  std::set<std::int64_t> elements;
};

// The same with a value for each key: the argument.
struct MapModel {
  enum Operation { kInsert, kRemove, kFind };
  static constexpr int kOperations = 3;
  static constexpr std::int64_t key_of(std::int64_t argument) { return SetModel::key_of(argument); }

  std::int64_t apply(int operation, std::int64_t argument) {
    if (operation == kInsert) return pairs.emplace(key_of(argument), argument).second;
    const auto found = pairs.find(key_of(argument));
    if (found == pairs.end()) return kNothing;
    const std::int64_t value = found->second;
    if (operation == kRemove) pairs.erase(found);
    return value;
  }
  bool operator<(const MapModel& other) const { return pairs < other.pairs; }

  std::map<std::int64_t, std::int64_t> pairs;
};

struct CounterModel {
  enum Operation { kAdd };
  static constexpr int kOperations = 1;

  std::int64_t apply(int, std::int64_t argument) { return std::exchange(sum, sum + argument); }
  bool operator<(const CounterModel& other) const { return sum < other.sum; }

  std::int64_t sum = 0;
};

}  // namespace loam::model
