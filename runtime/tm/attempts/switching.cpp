#include "runtime/tm/attempts/switching.hpp"

#include "runtime/platform/machine.hpp"
#include "runtime/tm/attempts/serial.hpp"
#include "runtime/tm/runtime.hpp"

#include <algorithm>

namespace loam::tm::switching {

constinit std::atomic<bool> scalable{false};

namespace {

// judging: acquire and release order what the last judge knew.
constinit std::atomic<std::uint32_t> judging{0};
constinit Judge judge;  // guarded by `judging`, as the counts at the begin of the window
constinit std::uint64_t commits_before = 0, validations_before = 0;
constinit std::atomic<std::uint64_t> window_began{0};

// Written behind the gate. relaxed: counts
constinit std::atomic<std::uint64_t> switches{0}, commits_of_few{0}, commits_of_many{0};

std::uint64_t validations_so_far() noexcept {
  std::uint64_t sum = 0;
  domain.for_each_slot([&sum](unsigned slot) {
    // relaxed: a count, a moment old
    if (const Descriptor* const d = Descriptor::of_slot(slot)) sum += d->validations.load(std::memory_order_relaxed);
  });
  return sum;
}

// What the algorithm that runs has committed since the last change.
std::uint64_t commits_since_change() noexcept {
  return commits_so_far() - commits_of_few.load(std::memory_order_relaxed) -
         commits_of_many.load(std::memory_order_relaxed);
}

void begin_window(std::uint64_t now) noexcept {
  commits_before = commits_so_far();
  validations_before = validations_so_far();
  window_began.store(now, std::memory_order_relaxed);  // relaxed: a hint to others, for the judge `judging` orders it
}

}  // namespace

bool Judge::begin_trial(bool scales, double rate, std::uint64_t now_ns) noexcept {
  // A long time without a trial makes the next rest short again.
  if (now_ns > rests_until_ns_ + 16 * rest_ns_) rest_ns_ = kRestNsLeast;
  rests_until_ns_ = now_ns + rest_ns_;
  rest_ns_ = std::min(rest_ns_ * 2, kRestNsMost);
  before_ = rate;
  moved_ = 0;
  tries_ = mixed_ = true;
  return scales_ = scales;
}

bool Judge::next(const Window& window, std::uint64_t now_ns) noexcept {
  if (window.ns == 0) return scales_;
  const double rate = static_cast<double>(window.commits) / static_cast<double>(window.ns);
  if (mixed_) {
    mixed_ = false;
    return scales_;
  }
  if (tries_) {
    tries_ = false;
    // Under either outcome the scalable one's rate is known now.
    rate_ = scales_ ? rate : before_;
    const bool better = scales_ ? rate > before_ * kGain : rate * kGain >= before_;
    if (!better) {
      mixed_ = true;
      scales_ = !scales_;
    }
    return scales_;
  }
  if (now_ns < rests_until_ns_) return scales_;
  if (!scales_) {
    const auto commits = static_cast<double>(std::max<std::uint64_t>(window.commits, 1));
    return static_cast<double>(window.validations) >= kValidationsMuch * commits ? begin_trial(true, rate, now_ns)
                                                                                 : scales_;
  }
  moved_ = rate < rate_ * kMovedDown || rate > rate_ * kMovedUp ? moved_ + 1 : 0;
  return moved_ >= 2 ? begin_trial(false, rate, now_ns) : scales_;
}

void Judge::refused(std::uint64_t now_ns) noexcept {
  scales_ = !scales_;
  tries_ = mixed_ = false;
  rests_until_ns_ = now_ns + rest_ns_;
  rest_ns_ = std::min(rest_ns_ * 2, kRestNsMost);
}

void prepare(Config& config) noexcept {
  if (config.privatization == Privatization::commit) config.privatization = Privatization::shared;
}

void change_attempts(Descriptor& d, bool scales) noexcept {
  d.scales = scales;
  if (scales) renew_snapshot(d);
}

void renew_snapshot(Descriptor& d) noexcept {
  d.snapshot = version_clock.now.load(std::memory_order_acquire);  // P4 of dctl.hpp
}

bool change_to(bool scales, std::uint64_t limit_ns) noexcept {
  if (!serial::acquire_for_change_within(limit_ns)) return false;
  if (switching::scales() != scales) {
    (scales ? commits_of_few : commits_of_many).fetch_add(commits_since_change(), std::memory_order_relaxed);
    switches.fetch_add(1, std::memory_order_relaxed);
    // relaxed, all three: serial.C publishes them
    scalable.store(scales, std::memory_order_relaxed);
    if (scales && shared.config.privatization != Privatization::none)
      shared.slow_begin.fetch_or(serial::kPublishes, std::memory_order_relaxed);
    else
      shared.slow_begin.fetch_and(~serial::kPublishes, std::memory_order_relaxed);
  }
  serial::release_after_change();
  return true;
}

void look(Descriptor& d) noexcept {
  if (serial::holds(d)) return;
  const std::uint64_t began = window_began.load(std::memory_order_relaxed);  // relaxed: see begin_window()
  if (const std::uint64_t now = platform::monotonic_ns(); now < began + kWindowNs) return;
  if (judging.exchange(1, std::memory_order_acquire) != 0) return;
  const std::uint64_t now = platform::monotonic_ns(), since = window_began.load(std::memory_order_relaxed);
  if (now >= since + 8 * kWindowNs) {
    begin_window(now);  // nobody has looked for long: not one load
  } else if (now >= since + kWindowNs) {
    const bool before = scales();
    const bool wanted = judge.next({.commits = commits_so_far() - commits_before,
                                    .validations = validations_so_far() - validations_before,
                                    .ns = now - since},
                                   now);
    if (wanted != before && !change_to(wanted, kGateNs)) judge.refused(now);
    begin_window(platform::monotonic_ns());
  }
  judging.store(0, std::memory_order_release);
}

Report report() noexcept {
  Report report{switches.load(std::memory_order_relaxed), commits_of_few.load(std::memory_order_relaxed),
                commits_of_many.load(std::memory_order_relaxed)};
  (scales() ? report.commits_of_many : report.commits_of_few) += commits_since_change();
  return report;
}

void forget_role() noexcept { judging.store(0, std::memory_order_relaxed); }

}  // namespace loam::tm::switching
