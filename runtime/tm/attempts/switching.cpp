#include "runtime/tm/attempts/switching.hpp"

#include "runtime/platform/machine.hpp"

#include <algorithm>

namespace loam::tm::switching {
namespace {

constinit std::atomic<bool> is_fixed{false};

// acquire, release: what the last judge knew.
constinit std::atomic<std::uint32_t> judging{0};
constinit std::atomic<std::uint64_t> looks_at_ns{0};  // before that, nobody need look

// Guarded by `judging`: the judge, and the window that runs.
constinit Judge judge;
constinit bool wanted = false;
constinit std::uint64_t gate_ns = kGateNs;
constinit std::uint64_t began_ns = 0, commits_before = 0, validations_before = 0;

// By who knows that no attempt runs. relaxed: serial.C publishes it
void set(bool scales) noexcept {
  if (scales)
    shared.slow_begin.fetch_or(serial::kScales, std::memory_order_relaxed);
  else
    shared.slow_begin.fetch_and(~serial::kScales, std::memory_order_relaxed);
}

std::uint64_t validations_so_far() noexcept {
  std::uint64_t sum = 0;
  domain.for_each_slot([&sum](unsigned slot) {
    // relaxed: a count, a moment old
    if (const Descriptor* const d = Descriptor::of_slot(slot)) sum += d->validations.load(std::memory_order_relaxed);
  });
  return sum;
}

void look_again_at(std::uint64_t ns) noexcept {
  looks_at_ns.store(ns, std::memory_order_relaxed);  // relaxed: a hint to others
}

void begin_window(std::uint64_t now_ns, std::uint64_t commits, std::uint64_t validations) noexcept {
  began_ns = now_ns;
  commits_before = commits;
  validations_before = validations;
  look_again_at(now_ns + kWindowNs);
}

// By the judge: to what it wants.
void change() noexcept {
  if (change_to(wanted, gate_ns)) {
    gate_ns = kGateNs;
    begin_window(platform::monotonic_ns(), commits_so_far(), validations_so_far());
  } else {
    gate_ns = std::min(gate_ns * 2, kGateNsMost);
    look_again_at(platform::monotonic_ns() + kRestPerGate * gate_ns);
  }
}

// By the judge.
void end_window(std::uint64_t now_ns) noexcept {
  if (wanted != scales()) return change();
  const std::uint64_t commits = commits_so_far(), validations = validations_so_far();
  const Window window{.scales = scales(),
                      .commits = commits - commits_before,
                      .validations = validations - validations_before,
                      .ns = now_ns - began_ns};
  if (window.ns <= kWindowNsMost) {
    if (window.commits < kCommitsLeast && window.ns < kWindowNsSparse) return look_again_at(now_ns + kWindowNs);
    wanted = judge.next(window, now_ns);
    if (wanted != scales()) return change();
  }
  begin_window(now_ns, commits, validations);
}

}  // namespace

bool Judge::judge_trial(bool scales, double rate, std::uint64_t now_ns) noexcept {
  const bool is_better = rate > before_ * kGain;
  if (!is_better && rate > trial_ * kRising && ++trial_windows_ < kTrialWindows) {
    trial_ = rate;
    return scales;
  }
  tries_ = false;
  if (is_better) {
    rate_ = rate;
    rests_until_ns_ = now_ns + std::max(rest_ns_, kRestNsKept);
    return scales;
  }
  rate_ = before_;
  rests_until_ns_ = now_ns + rest_ns_;
  rest_ns_ = std::min(rest_ns_ * 2, kRestNsMost);
  passes_ = true;
  return !scales;
}

void Judge::notice_load(bool scales, double rate, std::uint64_t now_ns) noexcept {
  if (rate_ == 0) rate_ = rate;
  if (scales && rate >= rate_) {
    rate_ += (rate - rate_) / 4;
    moved_ = 0;
    return;
  }
  moved_ = rate < rate_ * kMovedDown || rate > rate_ * kMovedUp ? moved_ + 1 : 0;
  if (moved_ < kMovedWindows) return;
  moved_ = 0;
  rate_ = rate;
  if (now_ns < keeps_rest_until_ns_) return;
  keeps_rest_until_ns_ = now_ns + kResetsApartNs;
  rest_ns_ = kRestNsLeast;
  rests_until_ns_ = std::min(rests_until_ns_, tried_ns_ + kRestNsLeast);
}

bool Judge::next(const Window& window, std::uint64_t now_ns) noexcept {
  const auto commits = static_cast<double>(window.commits);
  const double rate = commits / static_cast<double>(std::max<std::uint64_t>(window.ns, 1));
  if (passes_) {
    passes_ = false;
    trial_ = rate;
    return window.scales;
  }
  if (tries_) return judge_trial(window.scales, rate, now_ns);
  notice_load(window.scales, rate, now_ns);
  if (now_ns < rests_until_ns_) return window.scales;
  const auto validations = static_cast<double>(window.validations);
  if (!window.scales && validations < kValidationsMuch * std::max(commits, 1.0)) return false;
  before_ = rate;
  tried_ns_ = now_ns;
  moved_ = trial_windows_ = 0;
  tries_ = passes_ = true;
  return !window.scales;
}

void fix(Runs runs) noexcept {
  is_fixed.store(runs != Runs::judged, std::memory_order_relaxed);  // relaxed: no other thread runs
  set(runs == Runs::many);
}

bool change_to(bool scales, std::uint64_t limit_ns) noexcept {
  if (!serial::acquire_for_change_within(limit_ns)) return false;
  if (switching::scales() != scales) {
    set(scales);
    if (Descriptor& d = Descriptor::current_or_detached(); d.mode != Mode::detached) ++d.statistics.switches;
  }
  serial::release_after_change();
  return true;
}

void look(Descriptor& d) noexcept {
  if (is_fixed.load(std::memory_order_relaxed) || serial::holds(d)) return;
  // relaxed, here and below: a hint. Who judges has it from the last judge.
  if (platform::monotonic_ns() < looks_at_ns.load(std::memory_order_relaxed)) return;
  if (judging.exchange(1, std::memory_order_acquire) != 0) return;
  if (const std::uint64_t now = platform::monotonic_ns(); now >= looks_at_ns.load(std::memory_order_relaxed))
    end_window(now);
  judging.store(0, std::memory_order_release);
}

void forget_role() noexcept {
  judging.store(0, std::memory_order_relaxed);  // relaxed: the process has one thread
  begin_window(platform::monotonic_ns(), commits_so_far(), validations_so_far());
}

}  // namespace loam::tm::switching
