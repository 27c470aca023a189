#include "runtime/tm/attempts/grace.hpp"

#include "runtime/base/points.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/machine_fence.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace loam::tm::grace {
namespace {

// What most processors of today have behind one outer cache. Where it is wrong, that costs time only.
constexpr unsigned kCoresInGroup = 8;
constexpr unsigned kGroups = 64;  // more cores share them

// What a group's asker knows of a group.
struct Asked {
  std::uint64_t during;   // the number of the group's scan at `step`
  std::uint64_t step;     // 0: nothing is asked
  std::uint64_t cleared;  // the last step that was answered
};

// A thread has the role that it has set.
class Role {
 public:
  // acquire, release: what the last one knew. (The load first: it does not take the line from others.)
  bool take() noexcept { return !is_taken() && taken_.exchange(1, std::memory_order_acquire) == 0; }
  bool is_taken() const noexcept { return taken_.load(std::memory_order_relaxed) != 0; }  // relaxed: a hint
  void give_back() noexcept { taken_.store(0, std::memory_order_release); }
  void forget() noexcept { taken_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> taken_{0};
};

struct Group {
  // Changes when a thread comes.
  alignas(platform::kApartBytes) std::atomic<Descriptor*> members{nullptr};
  // Written by its collector, read by all askers.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> scans{1};  // those before this one have ended
  Role collector;
  alignas(platform::kApartBytes) Role asker;
  // Written by its asker, read by its members that have committed.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> step{0};
  // Written by its asker, read by its waiting members.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> cleared{0};
  // Read at each begin of its members.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> settled{0};
  // Its asker's.
  alignas(platform::kApartBytes) std::uint64_t clock = 0, clock_step = 0;  // clock_step 0: none is to be settled
  unsigned next = 0;
  std::array<Asked, kGroups> asked{};
};

constinit std::array<Group, kGroups> groups{};
constinit std::atomic<unsigned> groups_end{0};   // those behind it have no member
constinit std::atomic<unsigned> groups_used{0};  // that have members

// Short pauses, for what takes some hundred nanoseconds; later the core is given up.
class Pauses {
 public:
  void wait() noexcept {
    if (++count_ > kShort) return platform::yield();
    platform::pause();
    platform::pause();
  }
  bool were_many() const noexcept { return count_ > kShort + kYields; }

 private:
  static constexpr unsigned kShort = 500, kYields = 500;
  unsigned count_ = 0;
};

// Returns once each member has left the attempt that it is found inside of.
void scan(const Group& group) noexcept {
  constexpr unsigned kAtOnce = 32;
  struct Inside {
    const Descriptor* member;
    std::uint64_t running;
  };
  std::array<Inside, kAtOnce> inside;
  const Descriptor* member = group.members.load(std::memory_order_acquire);
  while (member != nullptr) {
    unsigned count = 0;
    for (; member != nullptr && count < kAtOnce; member = member->next_in_group) {
      inside[count] = {member, member->running.load(std::memory_order_acquire)};  // grace.A, grace.C
      count += inside[count].running % 2;
    }
    Pauses pauses;
    while (count != 0) {
      const auto [last, found] = inside[count - 1];
      if (last->running.load(std::memory_order_acquire) != found)  // grace.C
        --count;
      else
        pauses.wait();
    }
  }
}

// By the collector.
void collect(Group& group) noexcept {
  platform::full_fence();  // grace.A
  scan(group);
  const std::uint64_t ended = group.scans.load(std::memory_order_relaxed);  // relaxed: the role orders
  group.scans.store(ended + 1, std::memory_order_release);                  // grace.B, grace.C
}

// By the asker of `own`: the next step, a visit of the next group.
void visit_next(Group& own) noexcept {
  do
    own.next = own.next + 1 < groups_end.load(std::memory_order_relaxed) ? own.next + 1 : 0;  // relaxed: `own` is there
  while (groups[own.next].members.load(std::memory_order_relaxed) == nullptr);
  Group& other = groups[own.next];
  Asked& asked = own.asked[own.next];

  const std::uint64_t step = own.step.load(std::memory_order_relaxed) + 1;  // relaxed: own
  if (own.clock_step == 0) {
    own.clock = version_clock.now.load(std::memory_order_seq_cst);  // grace.D
    own.clock_step = step;
  }
  own.step.store(step, std::memory_order_relaxed);  // grace.B: the fence
  platform::full_fence();

  // Scan number `during` may have begun before the visit at which it was noted; the next one had not.
  bool answered = asked.step != 0 && other.scans.load(std::memory_order_acquire) >= asked.during + 2;  // grace.C
  if (answered) {
    asked.cleared = asked.step;
  } else if ((asked.step != 0 || &other == &own) && other.collector.take()) {
    // Nobody scans there, perhaps because nobody there waits.
    collect(other);
    other.collector.give_back();
    asked.cleared = step;
    answered = true;
  }
  if (asked.step == 0 || answered) {
    asked.during = other.scans.load(std::memory_order_relaxed);  // grace.B
    asked.step = step;
  }
  if (!answered) return;

  // relaxed, here and of groups_end: after the fence. Who is not a member yet begins its attempts after it (grace.A).
  std::uint64_t cleared = step;
  for (unsigned g = 0, end = groups_end.load(std::memory_order_relaxed); g < end; ++g)
    if (groups[g].members.load(std::memory_order_relaxed) != nullptr) cleared = std::min(cleared, own.asked[g].cleared);
  if (cleared <= own.cleared.load(std::memory_order_relaxed)) return;  // relaxed: own
  if (own.clock_step <= cleared) {
    if (own.clock > own.settled.load(std::memory_order_relaxed))  // relaxed: own
      own.settled.store(own.clock, std::memory_order_release);    // grace.D
    own.clock_step = 0;
  }
  own.cleared.store(cleared, std::memory_order_release);  // grace.C
}

void scan_all() noexcept {
  const unsigned end = groups_end.load(std::memory_order_relaxed);  // relaxed: after the fence of wait()
  for (unsigned g = 0; g < end; ++g) scan(groups[g]);
}

// By a thread that has committed and then executed a full fence: waits without the help of others.
void wait_alone(Group& own, std::uint64_t clock) noexcept {
  scan_all();
  if (clock <= own.settled.load(std::memory_order_relaxed) || !own.asker.take()) return;  // relaxed: may be old
  if (clock > own.settled.load(std::memory_order_relaxed))                                // relaxed: the role orders
    own.settled.store(clock, std::memory_order_release);                                  // grace.D
  own.asker.give_back();
}

Group& group_of(const Descriptor& d) noexcept { return groups[d.group]; }

}  // namespace

void join(Descriptor& d, unsigned core) noexcept {
  d.group = core / kCoresInGroup % kGroups;
  unsigned end = groups_end.load(std::memory_order_relaxed);
  while (end <= d.group && !groups_end.compare_exchange_weak(end, d.group + 1, std::memory_order_relaxed)) {
  }
  std::atomic<Descriptor*>& members = group_of(d).members;
  d.next_in_group = members.load(std::memory_order_relaxed);  // relaxed: threads come one after the other
  if (d.next_in_group == nullptr) groups_used.fetch_add(1, std::memory_order_relaxed);  // relaxed: as the list
  while (!members.compare_exchange_weak(d.next_in_group, &d, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void enter(Descriptor& d) noexcept {
  const std::uint64_t before = d.running.load(std::memory_order_relaxed);  // relaxed: own
  d.running.store(before + 1, std::memory_order_release);                  // grace.C
  platform::full_fence();                                                  // grace.A
}

void leave(Descriptor& d) noexcept {
  const std::uint64_t before = d.running.load(std::memory_order_relaxed);  // relaxed: own
  d.running.store(before + 1, std::memory_order_release);                  // grace.C
}

std::uint64_t settled(const Descriptor& d) noexcept {
  return group_of(d).settled.load(std::memory_order_acquire);  // grace.D
}

void wait(const Descriptor& d, std::uint64_t version) noexcept {
  if (version <= settled(d)) return;
  Group& own = group_of(d);
  LOAM_POINT("tm.privatizing");
  const std::uint64_t clock = version_clock.now.load(std::memory_order_seq_cst);        // grace.D
  platform::full_fence();                                                               // grace.A, grace.B
  if (groups_used.load(std::memory_order_relaxed) == 1) return wait_alone(own, clock);  // relaxed: after the fence
  const std::uint64_t wanted = own.step.load(std::memory_order_relaxed) + 1;            // relaxed: after the fence
  Pauses pauses;
  const auto is_over = [&] { return own.cleared.load(std::memory_order_acquire) >= wanted; };  // grace.C
  while (!is_over()) {
    if (own.asker.take()) {
      while (!is_over()) visit_next(own);
      own.asker.give_back();
    } else if (own.collector.take()) {
      do collect(own);
      while (!is_over() && own.asker.is_taken());
      own.collector.give_back();
    } else if (!pauses.were_many()) {
      pauses.wait();
    } else {
      return wait_alone(own, clock);
    }
  }
}

void forget_roles() noexcept {
  for (Group& group : groups) {
    group.collector.forget();
    group.asker.forget();
  }
}

}  // namespace loam::tm::grace
