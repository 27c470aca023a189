// Team: pinned threads that warm up, work during the timed part, and stop. The main thread gives the commands and
// sleeps meanwhile.
//   The main thread sleeps even beside a single worker: the first blocks come from the main thread, all later ones from
//   a worker, because several allocators have an arena per thread.
//   Phases: warmup -> timed -> done. A worker's loop asks its Pace whether to continue, and so notices a change some 30
//   us later. It takes the times itself and has its own segments (slices.hpp), so no thread reads data that another one
//   is writing. Only pthread_create allocates.
//   The timed part is one call of loam_counted_work() per worker, and one per thread that a worker makes (larson). So
//   tools that count instructions, from inside (event_counts) or outside (valgrind's --toggle-collect), count the work
//   and not the waiting before it.
//   LOAM_STACK_OFFSET in the environment (bytes) moves the workers' stacks. Address space randomisation moves them by
//   whole pages only, so without it all runs would have the same alignment between stacks and blocks.
#pragma once

#include "runtime/platform/cache_line.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/sync/barrier.hpp"
#include "workloads/harness/event_counts.hpp"
#include "workloads/harness/options.hpp"
#include "workloads/harness/pace.hpp"
#include "workloads/harness/recorder.hpp"
#include "workloads/harness/slices.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace loam::workloads {

inline constexpr double kSecondsPerNs = 1e-9;

class Team {
 public:
  // What one worker did in the timed phase.
  struct alignas(platform::kApartBytes) Times {
    std::uint64_t started_ns = 0, ended_ns = 0, cpu_ns = 0;
    std::optional<std::uint64_t> run_delay_ns;  // nothing where the kernel does not count it
    std::span<const Segment> segments;
    EventSums events;
  };

  class Member {
   public:
    Member(Team& team, unsigned index) noexcept;

    unsigned index() const noexcept { return index_; }
    // Called once, after the worker's own set-up.
    void wait_for_start() noexcept { team_.start_.arrive_and_wait(); }
    // The pace of the loop that warms up; it ends at once where nothing is to be warmed up.
    Pace& warm_up() noexcept;
    // The timed phase, once: work(pace), with a pace of at most `limit` operations.
    template <class Work>
    void timed(Work&& work, std::uint64_t limit = ~std::uint64_t{0});

    // For a loop whose work threads of its own do, who have to see the phase.
    const std::atomic<Phase>& phase() const noexcept { return team_.phase_; }

   private:
    void begin_timed(std::uint64_t limit) noexcept;
    void end_timed() noexcept;

    Team& team_;
    const unsigned index_;
    RunDelay delay_;
    EventCounters events_;
    SegmentLog segments_;
    Pace pace_;
  };

  // duration_ms 0: the timed phase has no end but the workers' own, and there is no warm-up.
  Team(const Options& options, std::uint64_t duration_ms) noexcept;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs work(member) in every thread; returns when all have ended. A worker must call wait_for_start() and timed()
  // once each. Ends the program if a thread cannot be made or placed.
  template <class Work>
  void run(Work& work) {
    run(&work, [](void* context, Member& member) { (*static_cast<Work*>(context))(member); });
  }

  // From the first worker's start to the last one's end.
  double elapsed_s() const noexcept;
  double thread_cpu_s() const noexcept;
  // How long the workers together waited for a processor in the timed phase; nothing where the kernel does not say.
  std::optional<double> run_delay_s() const noexcept;

  // The rate of the run, and what it is of (slices.hpp).
  struct Rate {
    enum class By { slices, own_slices, run };

    double operations, s;  // over one another the rate
    By by = By::run;
    std::optional<SlicedRate> sliced = {};

    double per_s() const noexcept { return operations / s; }
  };
  // operations: of all workers in the timed phase
  Rate rate(std::uint64_t operations) const;

  // Adds to an iteration's record what the rate is made of, and what the processor counted.
  void add_to(base::JsonLine& line, const Rate& rate) const;
  // Records the slices, one row each, where LOAM_SLICES is in the environment: an answer for whoever doubts a rate.
  void record_slices(Recorder& recorder) const;

 private:
  using Call = void (*)(void* context, Member& member);

  void run(void* context, Call call);
  static void* thread_main(void* argument);

  std::span<Segment> room(unsigned index) const noexcept;
  std::size_t all_segments_bytes() const noexcept;

  const Options& options_;
  const std::uint64_t duration_ms_, slice_ns_;
  Segment* segments_ = nullptr;
  void* context_ = nullptr;
  std::size_t stack_offset_ = 0;
  Call call_ = nullptr;
  sync::Barrier start_;
  alignas(platform::kApartBytes) std::atomic<Phase> phase_;
};

// Calls the work of a timed part. A function of its own, and the only one of this name: valgrind counts within it.
extern "C" void loam_counted_work(void (*work)(void* context, Pace& pace), void* context, Pace& pace);

template <class Work>
void Team::Member::timed(Work&& work, std::uint64_t limit) {
  begin_timed(limit);
  loam_counted_work([](void* context, Pace& pace) { (*static_cast<std::remove_reference_t<Work>*>(context))(pace); },
                    &work, pace_);
  end_timed();
}

}  // namespace loam::workloads
