#include "workloads/harness/team.hpp"

#include "runtime/base/check.hpp"
#include "runtime/platform/affinity.hpp"
#include "runtime/platform/compiler.hpp"
#include "runtime/platform/pages.hpp"
#include "workloads/harness/run_delay.hpp"

#include <alloca.h>
#include <pthread.h>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace loam::workloads {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;

struct ThreadArgument {
  Team* team;
  unsigned index;
};

// Static: a process runs one team, and its bookkeeping must not come from the allocator under study.
constinit Team::Times times[kThreadsMax];
constinit ThreadArgument arguments[kThreadsMax] = {};
constinit pthread_t threads[kThreadsMax];

constexpr std::size_t kStackOffsetMax = 65536;

// Of the workers' stacks, in bytes. What is no number counts as 0: the lab sets it, nobody else needs to.
std::size_t stack_offset() noexcept {
  const char* const text = std::getenv("LOAM_STACK_OFFSET");
  std::size_t bytes = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), bytes);
  return std::min(bytes, kStackOffsetMax);
}

}  // namespace

LOAM_CALLED_AS_WRITTEN void loam_counted_work(void (*work)(void* context, Pace& pace), void* context, Pace& pace) {
  work(context, pace);
  platform::compiler_barrier();  // the call stays a call: the function ends after the work
}

Team::Team(const Options& options, std::uint64_t duration_ms) noexcept
    : options_(options),
      duration_ms_(duration_ms),
      slice_ns_(duration_ms == 0 ? 0 : slice_ns_of(duration_ms * kNsPerMs)),
      start_(options.threads + 1),
      phase_(duration_ms == 0 || options.warmup_ms == 0 ? Phase::timed : Phase::warmup) {}

Team::~Team() {
  if (segments_ != nullptr) platform::unmap(segments_, all_segments_bytes());
}

std::size_t Team::all_segments_bytes() const noexcept {
  return options_.threads * segments_max(duration_ms_ * kNsPerMs) * sizeof(Segment);
}

std::span<Segment> Team::room(unsigned index) const noexcept {
  const std::size_t count = segments_max(duration_ms_ * kNsPerMs);
  return {segments_ + index * count, count};
}

Team::Member::Member(Team& team, unsigned index) noexcept
    : team_(team), index_(index), pace_(team.phase_, team.slice_ns_) {}

Pace& Team::Member::warm_up() noexcept {
  pace_.begin(Phase::warmup, ~std::uint64_t{0}, nullptr);
  return pace_;
}

void Team::Member::begin_timed(std::uint64_t limit) noexcept {
  const bool sliced = team_.duration_ms_ != 0 && delay_.counts();
  pace_.begin(Phase::timed, limit, sliced ? &segments_ : nullptr);
  times[index_] = {};
  times[index_].run_delay_ns = this_thread_run_delay_ns();
  times[index_].cpu_ns = platform::thread_cpu_ns();
  times[index_].started_ns = platform::monotonic_ns();
  if (sliced) segments_.begin(team_.room(index_), team_.slice_ns_, delay_, times[index_].started_ns);
  events_.begin();
}

void Team::Member::end_timed() noexcept {
  events_.end();
  times[index_].ended_ns = platform::monotonic_ns();
  times[index_].cpu_ns = platform::thread_cpu_ns() - times[index_].cpu_ns;
  auto& delay = times[index_].run_delay_ns;
  if (const auto now = this_thread_run_delay_ns(); now && delay)
    *delay = *now - *delay;
  else
    delay.reset();
  times[index_].segments = segments_.closed();
  times[index_].events = events_.read();
}

void* Team::thread_main(void* argument) {
  const auto& [team, index] = *static_cast<ThreadArgument*>(argument);
  const auto cpus = team->options_.cpus();
  const unsigned cpu = cpus[index % cpus.size()];
  LOAM_CHECK(platform::pin_this_thread(cpu), "thread {} cannot be placed on processor {}", index, cpu);
  Member member(*team, index);
  // Written to, so that the compiler keeps it below the frames of the work.
  auto* const gap = static_cast<volatile char*>(alloca(team->stack_offset_ + 1));
  gap[0] = 0;
  team->call_(team->context_, member);
  return nullptr;
}

void Team::run(void* context, Call call) {
  context_ = context;
  stack_offset_ = stack_offset();
  call_ = call;
  // From the operating system, and touched only as segments are closed.
  if (duration_ms_ != 0)
    segments_ = static_cast<Segment*>(platform::map_lazy_or_die(all_segments_bytes(), "the slices of a run"));
  for (unsigned i = 0; i < options_.threads; ++i) {
    arguments[i] = {this, i};
    const int failure = ::pthread_create(&threads[i], nullptr, thread_main, &arguments[i]);
    LOAM_CHECK(failure == 0, "thread {} of {} cannot be made: {}", i + 1, options_.threads,
               std::string_view(std::strerror(failure)));
  }
  start_.arrive_and_wait();
  if (duration_ms_ != 0) {
    if (options_.warmup_ms != 0) {
      platform::sleep_ns(options_.warmup_ms * kNsPerMs);
      phase_.store(Phase::timed, std::memory_order_relaxed);  // relaxed: see in()
    }
    platform::sleep_ns(duration_ms_ * kNsPerMs);
    phase_.store(Phase::done, std::memory_order_relaxed);  // relaxed: see in()
  }
  for (unsigned i = 0; i < options_.threads; ++i) ::pthread_join(threads[i], nullptr);
}

double Team::elapsed_s() const noexcept {
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  for (const auto& time : std::span(times).first(options_.threads)) {
    first = std::min(first, time.started_ns);
    last = std::max(last, time.ended_ns);
  }
  return static_cast<double>(last - first) * kSecondsPerNs;
}

std::optional<double> Team::run_delay_s() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& time : std::span(times).first(options_.threads)) {
    if (!time.run_delay_ns) return std::nullopt;
    sum += *time.run_delay_ns;
  }
  return static_cast<double>(sum) * kSecondsPerNs;
}

double Team::thread_cpu_s() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& time : std::span(times).first(options_.threads)) sum += time.cpu_ns;
  return static_cast<double>(sum) * kSecondsPerNs;
}

Team::Rate Team::rate(std::uint64_t operations) const {
  Rate rate{static_cast<double>(operations), elapsed_s()};
  if (segments_ == nullptr) return rate;
  std::span<const Segment> threads_segments[kThreadsMax];
  for (unsigned i = 0; i < options_.threads; ++i) threads_segments[i] = times[i].segments;
  const auto sliced = rate_of(std::span(threads_segments).first(options_.threads), slice_ns_);
  if (sliced.is_enough()) {
    rate.operations = static_cast<double>(sliced.operations);
    rate.s = sliced.thread_s / options_.threads;
    rate.by = Rate::By::slices;
  } else if (sliced.is_enough_by_own()) {
    rate.s = sliced.own_thread_s / options_.threads;
    rate.operations = sliced.own_per_s * rate.s;
    rate.by = Rate::By::own_slices;
  }
  rate.sliced = sliced;
  return rate;
}

void Team::add_to(base::JsonLine& line, const Rate& rate) const {
  static constexpr std::string_view kWords[] = {"slices", "own slices", "run"};
  line.field("rated_operations", rate.operations)
      .field("rated_s", rate.s)
      .field("rated_by", kWords[static_cast<std::size_t>(rate.by)]);
  if (const auto& sliced = rate.sliced) {
    line.field("slice_ms", slice_ns_ / kNsPerMs).field("slices", sliced->slices).field("slices_kept", sliced->kept);
    if (rate.by == Rate::By::slices && options_.threads > 1) line.field("fairness", sliced->fairness);
  }
  EventSums sums;
  for (const auto& time : std::span(times).first(options_.threads)) sums += time.events;
  sums.add_to(line);
}

void Team::record_slices(Recorder& recorder) const {
  if (segments_ == nullptr || std::getenv("LOAM_SLICES") == nullptr) return;
  static constexpr std::string_view kColumns[] = {"slice", "kept", "operations", "waited_ns"};
  // A record holds some hundred rows: its line has a limit.
  constexpr std::size_t kRowsPerRecord = 256;
  std::span<const Segment> threads_segments[kThreadsMax];
  for (unsigned i = 0; i < options_.threads; ++i) threads_segments[i] = times[i].segments;
  const auto threads_all = std::span(threads_segments).first(options_.threads);
  const std::size_t room_bytes = segments_max(duration_ms_ * kNsPerMs) * sizeof(SliceRow);
  auto* const memory = static_cast<SliceRow*>(platform::map_lazy_or_die(room_bytes, "the slices of a run"));
  const std::span<SliceRow> rows(memory, segments_max(duration_ms_ * kNsPerMs));
  const std::size_t count = std::min(rows.size(), rate_of(threads_all, slice_ns_, rows).slices);
  for (std::size_t first = 0; first < count; first += kRowsPerRecord) {
    auto& line = recorder.series("slices", kColumns);
    for (std::size_t i = first; i < std::min(count, first + kRowsPerRecord); ++i)
      line.array().value(i).value(rows[i].kept ? 1 : 0).value(rows[i].operations).value(rows[i].waited_ns).end();
    line.end();
    recorder.write();
  }
  platform::unmap(memory, room_bytes);
}

}  // namespace loam::workloads
