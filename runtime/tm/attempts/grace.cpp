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

constexpr unsigned kGroups = 64;  // more cores share them

// What a group's asker knows of a group.
struct Asked {
  std::uint64_t begun;    // scans of the group that had begun at `step`
  std::uint64_t step;     // 0: nothing is asked
  std::uint64_t cleared;  // the last step that was answered
};

// A thread has the role that it has set.
class Role {
 public:
  // acquire, release: what the last one knew. (The load first: it does not take the line from others.)
  bool take() noexcept {
    return taken_.load(std::memory_order_relaxed) == 0 && taken_.exchange(1, std::memory_order_acquire) == 0;
  }
  void give_back() noexcept { taken_.store(0, std::memory_order_release); }
  void forget() noexcept { taken_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> taken_{0};
};

struct Group {
  // Changes when a thread comes.
  alignas(platform::kApartBytes) std::atomic<Descriptor*> members{nullptr};
  // Written by its collector, read by all askers.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> ended{0};
  // Read by its waiting members.
  alignas(platform::kApartBytes) Role collector;
  Role asker;
  // Written by its asker, read by its members that have committed.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> cleared{0};
  // Read at each begin of its members.
  alignas(platform::kApartBytes) std::atomic<std::uint64_t> settled{0};
  // Its asker's.
  alignas(platform::kApartBytes) std::uint64_t clock = 0, clock_step = 0;  // clock_step 0: none is to be settled
  unsigned next = 0;
  std::array<Asked, kGroups> asked{};
};

constinit std::array<Group, kGroups> groups{};
constinit std::atomic<unsigned> groups_end{0};

// Returns once the attempt is over that the member is inside, if any.
void wait_for(const Descriptor& member) noexcept {
  const std::uint64_t found = member.running.load(std::memory_order_acquire);  // grace.A, grace.C
  if (found % 2 == 0) return;
  sync::Backoff backoff;
  while (member.running.load(std::memory_order_acquire) == found) backoff.wait();  // grace.C
}

void scan(const Group& group) noexcept {
  for (const Descriptor* member = group.members.load(std::memory_order_acquire); member != nullptr;
       member = member->next_in_group)
    wait_for(*member);
}

// By the collector.
void collect(Group& group) noexcept {
  const std::uint64_t number = group.begun.load(std::memory_order_relaxed) + 1;  // relaxed: the role orders
  group.begun.store(number, std::memory_order_relaxed);                          // grace.A: the fence
  platform::full_fence();
  scan(group);
  group.ended.store(number, std::memory_order_release);  // grace.C
}

// By the asker of `own`: the next step, a visit of the next group.
void visit_next(Group& own) noexcept {
  do own.next = own.next + 1 < groups_end.load(std::memory_order_relaxed) ? own.next + 1 : 0;  // relaxed: `own` is there
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

  const auto is_answered = [&] { return other.ended.load(std::memory_order_acquire) > asked.begun; };  // grace.C
  if (asked.step != 0 && !is_answered() && other.collector.take()) {  // nobody there waits, so nobody scans
    collect(other);
    other.collector.give_back();
  }
  if (asked.step != 0 && is_answered()) {
    asked.cleared = asked.step;
    asked.step = 0;
  }
  if (asked.step == 0) {
    asked.begun = other.begun.load(std::memory_order_relaxed);  // grace.B
    asked.step = step;
  }

  // relaxed, here and of groups_end: after the fence. Who is not a member yet begins its attempts after it (grace.A).
  std::uint64_t cleared = step;
  for (unsigned g = 0, end = groups_end.load(std::memory_order_relaxed); g < end; ++g)
    if (groups[g].members.load(std::memory_order_relaxed) != nullptr) cleared = std::min(cleared, own.asked[g].cleared);
  if (cleared <= own.cleared.load(std::memory_order_relaxed)) return;  // relaxed: own
  if (own.clock_step <= cleared) {
    if (own.clock != own.settled.load(std::memory_order_relaxed))  // relaxed: own
      own.settled.store(own.clock, std::memory_order_release);     // grace.D
    own.clock_step = 0;
  }
  own.cleared.store(cleared, std::memory_order_release);  // grace.C
}

// Without the help of others.
void scan_all() noexcept {
  const unsigned end = groups_end.load(std::memory_order_relaxed);  // relaxed: after the fence of wait()
  for (unsigned g = 0; g < end; ++g) scan(groups[g]);
}

Group& group_of(const Descriptor& d) noexcept { return groups[d.group]; }

}  // namespace

void join(Descriptor& d) noexcept {
  d.group = platform::cpu_number() / cores_in_group % kGroups;
  unsigned end = groups_end.load(std::memory_order_relaxed);
  while (end <= d.group && !groups_end.compare_exchange_weak(end, d.group + 1, std::memory_order_relaxed)) {
  }
  std::atomic<Descriptor*>& members = group_of(d).members;
  d.next_in_group = members.load(std::memory_order_relaxed);
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
  platform::full_fence();                                                         // grace.B
  const std::uint64_t wanted = own.step.load(std::memory_order_relaxed) + 1;  // relaxed: the fence
  LOAM_POINT("tm.privatizing");
  constexpr unsigned kPatience = 64;  // waits without a role
  sync::Backoff backoff;
  unsigned waits = 0;
  const auto is_over = [&] { return own.cleared.load(std::memory_order_acquire) >= wanted; };  // grace.C
  while (!is_over()) {
    if (own.asker.take()) {
      while (!is_over()) visit_next(own);
      own.asker.give_back();
    } else if (own.collector.take()) {
      collect(own);
      own.collector.give_back();
    } else if (++waits < kPatience) {
      backoff.wait();
    } else {
      return scan_all();
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
