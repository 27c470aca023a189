#include "simulator/engine/checker.hpp"

#include "simulator/engine/fail.hpp"
#include "simulator/engine/random.hpp"
#include "simulator/engine/settings.hpp"
#include "simulator/engine/watchdog.hpp"

#include <algorithm>

namespace loam::simulator {
namespace {

// random: most accesses are about as long, so that threads mix; one in kLongEach lets the others get far.
constexpr std::uint64_t kShort = 100, kLong = 5000, kLongEach = 32;
// pct: one change falls into the first so many accesses, the next into a quarter of them and so on, for short programs too;
// whose thread loses its priority waits for so long.
constexpr std::uint64_t kHorizon = 2000, kStepCycles = 10, kDemotion = 100'000;
// exhaustive: an execution that makes so many is taken for one without an end.
constexpr std::uint64_t kAccessesMax = 200'000;
// Stands for the address of what concerns all of them.
constexpr std::uintptr_t kEverywhere = 1;

[[noreturn]] void fail_endless(std::uint64_t accesses) {
  say("the program did not end within {} accesses: threads wait for what no other will do", accesses);
  checker->say_how();
  leave();
}

const void* shown(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

constexpr std::string_view kOrders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};

}  // namespace

Checker* checker = nullptr;

Checker::Checker(Explored* explored) : random_(seeded("checker") | 1) {
  if (explored != nullptr) {
    exploration_.emplace(*explored);
    scheduler.follow([] { return checker->exploration_->decide(); });
  }
  for (unsigned i = 0; i < kChangesMax; ++i) changes_[i] = 1 + seeded("change", i) % (kHorizon >> 2 * i);
}

std::uint64_t Checker::below(std::uint64_t bound) noexcept {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ % bound;
}

std::uint64_t Checker::cost() noexcept {
  if (settings.check == Check::random) return 1 + below(kShort) + (below(kLongEach) == 0 ? below(kLong) : 0);
  const bool changes = std::find(std::begin(changes_), std::end(changes_), begun_) != std::end(changes_);
  return kStepCycles + (changes ? kDemotion : 0);
}

void Checker::step(std::uintptr_t address, char what, Order order, std::uintptr_t pc) {
  const unsigned thread = thread_number();
  ++begun_;
  if (exploration_) {
    if (begun_ == kAccessesMax) fail_endless(begun_);
    now.core->clock += kStepCycles;
    if (what != 'r' && what != 'w') exploration_->before(address);
  } else {
    now.core->clock += cost();
    if (now.core->clock > now.next || now.core->clock >= now.limit) scheduler.reschedule();
  }
  note_progress();
  ++steps_;
  if (turns_ == 0 || order_[(turns_ - 1) % kTurnsKept] != thread) order_[turns_++ % kTurnsKept] = thread;
  last_[steps_ % kStepsKept] = {address, pc, 0, thread, what, false, order};
}

void Checker::plain(std::uintptr_t address, unsigned bytes, bool writes, std::uintptr_t pc) {
  step(address, writes ? 'w' : 'r', Order::relaxed, pc);
  if (thread_count == 1) return;  // what the first thread did before there was a second is before all that others do
  const Race race = memory_.plain(thread_number(), address, bytes, writes);
  if (!race.found) return;
  say("race: thread {} {} {} bytes at {} (code {}), unordered with a {} by thread {}", thread_number(),
      writes ? "writes" : "reads", bytes, shown(address), shown(pc), race.other_wrote ? "write" : "read", race.other);
  say_how();
  leave();
}

std::uint64_t Checker::load(std::uintptr_t address, Order order, std::uint64_t value) {
  const unsigned thread = thread_number();
  const std::size_t choices = memory_.choices(thread, address, order, value);
  // By dice, every second load gets the newest store, so that who waits for one ends.
  const std::size_t choice = exploration_                    ? exploration_->store_to_see(choices)
                             : choices == 1 || below(2) == 0 ? 0
                                                             : below(choices);
  const std::uint64_t seen = memory_.load(thread, address, order, choice);
  note(seen, false);
  last_[steps_ % kStepsKept].stale = choice != 0;
  return seen;
}

// A lock of libc's: all that was before another's use of it happens before.
void Checker::lock(std::uintptr_t address, std::uintptr_t pc) {
  step(address, 'M', Order::acq_rel, pc);
  memory_.acquired(thread_number(), address);
  memory_.released(thread_number(), address);
}

void Checker::newest(std::uintptr_t address, Order order, std::uint64_t value) {
  memory_.choices(thread_number(), address, order, value);
  memory_.load(thread_number(), address, order, 0);
  note(value, false);
}

void Checker::store(std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value) {
  memory_.store(thread_number(), address, order, before, value);
  note(value, true);
}

void Checker::modify(std::uintptr_t address, Order order, std::uint64_t before, std::uint64_t value) {
  memory_.modify(thread_number(), address, order, before, value);
  note(value, before != value);
}

void Checker::note(std::uint64_t value, bool changed) {
  Step& step = last_[steps_ % kStepsKept];
  step.value = value;
  if (exploration_) exploration_->after(step.pc, step.address, value, changed);
}

void Checker::fence(Order order, std::uintptr_t pc) {
  step(kEverywhere, 'F', order, pc);
  memory_.fence(thread_number(), order);
}

void Checker::barrier(std::uintptr_t pc) {
  if (simulated()) step(kEverywhere, 'B', Order::seq_cst, pc);
  memory_.membarrier();
}

void Checker::spawned(unsigned thread, unsigned maker) {
  if (thread >= kOrderedThreadsMax)
    fail("LOAM_SIM_CHECK: thread {}; at most {} threads can be checked", thread, kOrderedThreadsMax);
  memory_.spawned(thread, maker);
  if (exploration_) exploration_->began(thread);
}

void Checker::pause(bool in_vain) {
  if (exploration_ && simulated()) exploration_->pause(in_vain);
}

void Checker::ended(int status) {
  if (status == 0) return;
  say("the program ended with status {}", status);
  say_how();
}

void Checker::say_how() {
  char text[8 * kTurnsKept];
  if (exploration_)
    say("{} departures; {} accesses, {} turns; repeat with LOAM_SIM_CHECK=exhaustive LOAM_SIM_SCHEDULE=\"{}\"",
        exploration_->search().departures(), steps_, turns_, exploration_->search().text(text));
  else
    say("seed {}, {}; {} accesses, {} turns; repeat with ./loam test --replay {}", settings.seed,
        settings.check == Check::pct ? "pct" : "random", steps_, turns_, settings.seed);
  std::size_t used = 0;
  for (std::uint64_t turn = turns_ - std::min<std::uint64_t>(turns_, kTurnsKept); turn < turns_; ++turn) {
    const auto word = base::format_to(std::span(text).subspan(used), " {}", order_[turn % kTurnsKept]);
    used += word.size();
  }
  say("threads in the order in which they ran last:{}", std::string_view(text, used));
  for (std::uint64_t at = steps_ + 1 - std::min<std::uint64_t>(steps_, kStepsKept); at <= steps_; ++at) {
    const Step& step = last_[at % kStepsKept];
    const bool atomic = step.what != 'r' && step.what != 'w';
    const std::string_view what = step.what == 'r'   ? "reads"
                                  : step.what == 'w' ? "writes"
                                  : step.what == 'L' ? "loads"
                                  : step.what == 'S' ? "stores"
                                  : step.what == 'B' ? "shows everything to all:"
                                  : step.what == 'F' ? "fences"
                                                     : "modifies";
    if (atomic)
      say("  thread {} {} {} {} = {}{} (code {})", step.thread, what, kOrders[static_cast<unsigned>(step.order)],
          shown(step.address), step.value, step.stale ? ", an older value" : "", shown(step.pc));
    else
      say("  thread {} {} {} (code {})", step.thread, what, shown(step.address), shown(step.pc));
  }
}

}  // namespace loam::simulator
