#include "simulator/engine/exploration.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace loam::simulator {
namespace {

bool can_run(const Thread& thread) noexcept {
  return thread.state == ThreadState::running || (thread.state == ThreadState::ready && thread.waits_in == nullptr);
}

}  // namespace

bool AddressSet::add(std::uintptr_t address) noexcept {
  const std::size_t at = slot(address);
  if (slots_[at] == address) return false;
  if (count_ == kMax / 2)
    fail("LOAM_SIM_CHECK=exhaustive: threads share more than {} atomics; make the case smaller, or use random", count_);
  slots_[at] = address;
  ++count_;
  return true;
}

// Threads but the current one that can run, from the next number on, which wait or do not.
Exploration::Ways Exploration::others(bool waiting) noexcept {
  Ways found;
  const unsigned own = now.thread->number;
  for (unsigned i = 1; i < thread_count; ++i) {
    Thread* const thread = threads[(own + i) % thread_count];
    if (thread != nullptr && can_run(*thread) && waiting_[thread->number].waits == waiting) found.add(thread);
  }
  return found;
}

Thread* Exploration::choose(const Ways& ways) {
  const unsigned way = common_.search.choose(ways.free, ways.all);
  if (common_.search.diverged())
    fail(
        "LOAM_SIM_CHECK=exhaustive: the program does other things than in the execution before; it must depend on "
        "nothing but its schedule (or LOAM_SIM_SCHEDULE is that of another program)");
  return ways.at[way];
}

// Ways to go on where the current thread does not, or should not: those that can do something first.
Exploration::Ways Exploration::when_it_waits() {
  Ways ways = others(false), late = others(true);
  const Thread& own = *now.thread;
  ways.free = ways.all;
  if (ways.all == 0) {
    // All of them wait: each looks once more, in turn.
    for (auto& one : waiting_) one.waits = false;
    ways.free = 1;
  }
  for (unsigned i = 0; i < late.all; ++i) ways.add(late.at[i]);
  if (can_run(own)) ways.add(now.thread);
  return ways;
}

void Exploration::give_way_to(Thread* thread) {
  waiting_[thread->number].waits = false;
  if (thread == now.thread) return;
  wanted_ = thread;
  scheduler.reschedule();
}

bool Exploration::is_shared(std::uintptr_t address) {
  const unsigned own = now.thread->number + 1;
  unsigned& user = users_[address];
  if (user == 0) user = own;
  if (user != own && common_.shared.add(address)) common_.grew = true;
  return common_.shared.contains(address);
}

void Exploration::before(std::uintptr_t address) {
  Ways others_first = others(false);
  const Ways late = others(true);
  if (others_first.all + late.all == 0) return;
  const bool shared = is_shared(address);
  if (waiting_[now.thread->number].waits) return give_way_to(choose(when_it_waits()));
  Ways ways;
  ways.add(now.thread);
  ways.free = 1;
  if (shared || common_.search.follows()) {
    for (unsigned i = 0; i < others_first.all; ++i) ways.add(others_first.at[i]);
    for (unsigned i = 0; i < late.all; ++i) ways.add(late.at[i]);
  }
  give_way_to(choose(ways));
}

std::size_t Exploration::store_to_see(std::size_t stores) noexcept {
  return common_.search.choose(1, static_cast<unsigned>(stores));
}

void Exploration::after(std::uintptr_t pc, std::uintptr_t address, std::uint64_t value, bool changed) noexcept {
  const unsigned own = now.thread->number;
  Waiting& self = waiting_[own];
  if (changed) {
    self = {};
    for (auto& one : waiting_) one.waits = false;
    return;
  }
  self.looked = true;
  const auto end = self.last + std::min(self.looks, kLooksMax);
  const bool known = std::any_of(self.last, end, [&](const Look& look) {
    return look.pc == pc && look.address == address && look.value == value;
  });
  if (known)
    self.waits = true;
  else
    self.last[self.looks++ % kLooksMax] = {pc, address, value};
}

void Exploration::pause(bool in_vain) {
  Waiting& self = waiting_[now.thread->number];
  if (!std::exchange(self.looked, false) && !in_vain) return;
  self.waits = true;
  const Ways ways = when_it_waits();
  give_way_to(choose(ways));
}

// Nobody can run but who waits for a time: the first of them.
Thread* Exploration::first_to_time_out() const noexcept {
  Thread* found = nullptr;
  for (unsigned i = 0; i < thread_count; ++i) {
    Thread* const thread = threads[i];
    if (thread == nullptr || thread->state != ThreadState::ready || thread->waits_in == nullptr) continue;
    if (found == nullptr || thread->runnable_at < found->runnable_at) found = thread;
  }
  return found;
}

Thread* Exploration::decide() {
  if (wanted_ != nullptr) return std::exchange(wanted_, nullptr);
  if (now.thread->state == ThreadState::running) return now.thread;
  const Ways ways = when_it_waits();
  if (ways.all == 0) return first_to_time_out();
  Thread* const chosen = choose(ways);
  waiting_[chosen->number].waits = false;
  return chosen;
}

}  // namespace loam::simulator
