// A team of pinned threads that warm up, are timed, and stop, all at the word of the main thread, which sleeps
// meanwhile.
//   Main sleeps also beside one worker: the first blocks come from main, all later ones from a worker, and several
//   allocators keep an arena per thread.
//   Phases: warmup -> timed -> done. A worker sees a change at its next operation and stamps the time itself, so
//   nothing is read while it is being counted. No allocation but pthread_create's own.
//   LOAM_STACK_OFFSET in the environment (bytes) moves the workers' stacks: address space randomisation moves them by
//   whole pages only, so that without it all runs would share one accident of alignment between stacks and blocks.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/barrier.hpp"
#include "workloads/harness/options.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

namespace loam::workloads {

inline constexpr double kSecondsPerNs = 1e-9;

enum class Phase : std::uint32_t { warmup, timed, done };

inline bool in(const std::atomic<Phase>& now, Phase phase) noexcept {
  // relaxed: the phase carries no data; results are read after joining.
  return now.load(std::memory_order_relaxed) == phase;
}

class Team {
 public:
  // What one worker did in the timed phase.
  struct alignas(platform::kApartBytes) Times {
    std::uint64_t started_ns = 0, ended_ns = 0, cpu_ns = 0;
    std::optional<std::uint64_t> run_delay_ns;  // nothing where the kernel does not count it
  };

  class Member {
   public:
    Member(Team& team, unsigned index) noexcept : team_(team), index_(index) {}

    unsigned index() const noexcept { return index_; }
    // Called once, after the worker's own set-up.
    void wait_for_start() noexcept { team_.start_.arrive_and_wait(); }
    // The hot loop's condition, to be kept in a local variable; see in().
    const std::atomic<Phase>& phase() const noexcept { return team_.phase_; }
    // Around the timed phase.
    void begin_timed() noexcept;
    void end_timed() noexcept;

   private:
    Team& team_;
    unsigned index_;
  };

  // duration_ms 0: the timed phase has no end but the workers' own, and there is no warm-up.
  Team(const Options& options, std::uint64_t duration_ms) noexcept;

  // Runs work(member) in every thread; returns when all have ended. A worker must call wait_for_start(), begin_timed()
  // and end_timed() once each. Ends the program if a thread cannot be made or placed.
  template <class Work>
  void run(Work& work) {
    run(&work, [](void* context, Member& member) { (*static_cast<Work*>(context))(member); });
  }

  // From the first worker's start to the last one's end.
  double elapsed_s() const noexcept;
  double thread_cpu_s() const noexcept;
  // How long the workers together waited for a processor in the timed phase; nothing where the kernel does not say.
  std::optional<double> run_delay_s() const noexcept;

 private:
  using Call = void (*)(void* context, Member& member);

  void run(void* context, Call call);
  static void* thread_main(void* argument);

  const Options& options_;
  const std::uint64_t duration_ms_;
  void* context_ = nullptr;
  std::size_t stack_offset_ = 0;
  Call call_ = nullptr;
  sync::Barrier start_;
  alignas(platform::kApartBytes) std::atomic<Phase> phase_;
};

}  // namespace loam::workloads
