// fragmentation: memory that a program does not use and does not get rid of after the sizes of its blocks have changed.
//   Each round has four steps, in every thread: A allocate small blocks until `live_kib` are live; B free 90 % of them
//   at random; C allocate blocks `growth` times as large, until `live_kib` are live again; D free all but one in 64,
//   again at random. The survivors of B lie on nearly every page that A took: what an allocator cannot use for the
//   larger blocks of C, and cannot give back, comes on top of them.
//   Metric: fragmentation = resident_peak_bytes / live_bytes; 1 is ideal.
//     resident_peak_bytes  by how much the resident memory of the process (Rss in /proc/self/smaps_rollup) exceeds what
//                          it was before the first block, at the end of the step where that is most; without this
//                          program's own lists of blocks. Headers, rounding, caches and tables of the allocator count.
//     live_bytes           the sizes of all blocks held, at the end of the step where that is most
//     resident_end_bytes, live_end_bytes   both after the last D: what is kept of memory that is hardly used any more
//   Why this ratio: Johnstone and Wilson, "The memory fragmentation problem: solved?", ISMM 1998, have it among their
//   measures: the most memory used over the most memory live.
//   Why this change of sizes: so programs are built that fragment any allocator which does not move blocks; Robson,
//   "Bounds for some functions concerning dynamic storage allocation", JACM 1974.
//   Why resident memory: address space costs nothing, and allocators reserve it in advance.
//   Caveat: the steps follow each other at once. What an allocator gives back after a time of idleness does not show.
#include "runtime/base/bits.hpp"
#include "runtime/base/random.hpp"
#include "runtime/sync/barrier.hpp"
#include "workloads/allocation/shared/allocation.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>

namespace loam::workloads::allocation {
namespace {

constexpr std::int64_t kGrowthMax = 8, kRoundsMax = 64;
constexpr std::uint32_t kFreedPercent = 90;  // by step B
constexpr std::uint32_t kKeptOneIn = 64;     // by step D

constexpr ParameterSpec kParameters[] = {
    size_parameter("size_min", 16, "bytes of the smallest block of step A"),
    size_parameter("size_max", 1024, "bytes of its largest; small ones are more frequent in inverse proportion"),
    ParameterSpec::integer("growth", 2, 1, kGrowthMax, "1", "by how much the blocks of step C are larger"),
    ParameterSpec::integer("live_kib", 16384, 16, 1 << 22, "KiB", "live after steps A and C, per thread"),
    ParameterSpec::integer("rounds", 12, 1, kRoundsMax, "1", "how often the sizes change and change back"),
};

constexpr MetricSpec kFragmentation[] = {
    {"fragmentation", "1", MetricSpec::Better::lower, MetricSpec::Kind::ratio, "resident_peak_bytes", "live_bytes"},
    {"resident_peak_bytes", "B", MetricSpec::Better::lower, MetricSpec::Kind::bytes},
    {"live_bytes", "B", MetricSpec::Better::neither, MetricSpec::Kind::bytes},
    {"resident_end_bytes", "B", MetricSpec::Better::lower, MetricSpec::Kind::bytes},
    {"live_end_bytes", "B", MetricSpec::Better::neither, MetricSpec::Kind::bytes},
};
constexpr auto kOwnMetrics = joined(kFragmentation, kMetrics);

struct Settings {
  explicit Settings(const ParameterValues& values)
      : sizes(static_cast<std::size_t>(values.integer("size_min")),
              static_cast<std::size_t>(values.integer("size_max"))),
        growth(static_cast<std::size_t>(values.integer("growth"))),
        live(values.integer("live_kib") * 1024),
        rounds(static_cast<unsigned>(values.integer("rounds"))),
        // No block is smaller, and the last one may go beyond the limit.
        blocks_max(static_cast<std::size_t>(live / values.integer("size_min")) + 1) {}

  SkewedSizes sizes;
  std::size_t growth;
  std::int64_t live;
  unsigned rounds;
  std::size_t blocks_max;
};

void check(const ParameterValues& values) {
  check_sizes(values);
  const std::int64_t largest = values.integer("size_max") * values.integer("growth");
  const std::int64_t live_kib = values.integer("live_kib");
  if (live_kib * 1024 < largest) reject_less("live_kib", live_kib, "size_max x growth in KiB", (largest + 1023) / 1024);
}

// Resident bytes of the process, exactly; 0 where the kernel does not say. Allocates nothing.
std::uint64_t resident_bytes() noexcept {
  const int file = ::open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[4096];
  const auto length = ::read(file, text, sizeof text);
  ::close(file);
  if (length <= 0) return 0;
  const std::string_view all(text, static_cast<std::size_t>(length));
  constexpr std::string_view kKey = "\nRss:";
  const auto key = all.find(kKey);
  if (key == all.npos) return 0;
  const auto digits = all.find_first_not_of(' ', key + kKey.size());
  if (digits == all.npos) return 0;
  std::uint64_t kib = 0;
  std::from_chars(all.data() + digits, all.data() + all.size(), kib);
  return kib * 1024;
}

// The blocks of one thread. Their list is never backed by huge pages, so that its own memory is known to the page.
class Holder {
 public:
  Holder(const Settings& settings, Ledger& ledger, std::uint64_t seed, unsigned thread)
      : settings_(settings),
        ledger_(ledger),
        random_(seed, thread),
        list_(
            static_cast<Held*>(platform::map_lazy_or_die(list_bytes(), "the list of blocks", {.huge_pages = false}))) {}
  ~Holder() { platform::unmap(list_, list_bytes()); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[gnu::noinline]] void fill(std::size_t factor) {
    while (ledger_.live_bytes() < settings_.live) {
      const Held held = ledger_.allocate(factor * settings_.sizes.drawn(random_));
      if (held.block == nullptr) break;
      list_[count_++] = held;
      ++ledger_.operations;
    }
    most_ = std::max(most_, count_);
  }

  // Keeps each block with probability kept / of.
  [[gnu::noinline]] void thin(std::uint32_t kept, std::uint32_t of) {
    std::size_t left = 0;
    for (const Held& held : std::span(list_, count_)) {
      if (random_.below(of) < kept) {
        list_[left++] = held;
      } else {
        ledger_.release(held);
      }
    }
    count_ = left;
  }

  // Of the list, as far as it was ever written.
  std::uint64_t own_resident_bytes() const noexcept {
    return base::round_up(std::uint64_t{most_ * sizeof(Held)}, std::uint64_t{platform::kPageBytes});
  }

 private:
  std::size_t list_bytes() const noexcept { return settings_.blocks_max * sizeof(Held); }

  const Settings& settings_;
  Ledger& ledger_;
  base::Random random_;
  Held* const list_;
  std::size_t count_ = 0, most_ = 0;
};

struct Measured {
  std::uint64_t live, resident;
};

// What was measured at the end of each step, by one thread while the others wait at a barrier.
class Course {
 public:
  static constexpr std::size_t kSteps = 4;  // of a round

  explicit Course(std::span<const Ledger> ledgers) noexcept : ledgers_(ledgers) {}

  // Before the first thread begins.
  void join(unsigned thread, const Holder& holder) noexcept { holders_[thread] = &holder; }
  void begin() noexcept { before_ = resident_bytes(); }

  void measure() noexcept {
    const std::uint64_t resident = resident_bytes();
    known_ = known_ && resident != 0;
    std::uint64_t others = before_;
    for (std::size_t i = 0; i < ledgers_.size(); ++i) others += holders_[i]->own_resident_bytes();
    steps_[count_++] = {live_bytes(ledgers_), std::max(resident, others) - others};
  }

  bool known() const noexcept { return known_ && before_ != 0; }
  std::span<const Measured> steps() const noexcept { return std::span(steps_).first(count_); }

 private:
  const std::span<const Ledger> ledgers_;
  std::array<const Holder*, kThreadsMax> holders_{};
  std::uint64_t before_ = 0;
  bool known_ = true;
  std::size_t count_ = 0;
  std::array<Measured, kSteps * kRoundsMax> steps_;
};

void work(const Settings& settings, Holder& holder, Course& course, sync::Barrier& barrier, Team::Member& member) {
  const auto end_of_step = [&] {
    barrier.arrive_and_wait();
    if (member.index() == 0) course.measure();
    barrier.arrive_and_wait();
  };
  course.join(member.index(), holder);
  member.wait_for_start();
  if (member.index() == 0) course.begin();
  barrier.arrive_and_wait();
  member.timed([&](Pace&) {
    for (unsigned round = 0; round < settings.rounds; ++round) {
      holder.fill(1);
      end_of_step();
      holder.thin(100 - kFreedPercent, 100);
      end_of_step();
      holder.fill(settings.growth);
      end_of_step();
      holder.thin(1, kKeptOneIn);
      end_of_step();
    }
  });
  holder.thin(0, 1);
}

bool conclude(const Course& course, std::span<const Ledger> ledgers, const Team& team, Recorder& recorder) {
  const auto steps = course.steps();
  const std::uint64_t resident = std::ranges::max(steps, {}, &Measured::resident).resident;
  const std::uint64_t live = std::ranges::max(steps, {}, &Measured::live).live;
  const Totals totals(ledgers);
  auto& line = open_report(recorder, team, totals).field("live_bytes", live).field("live_end_bytes", steps.back().live);
  if (course.known())
    line.field("resident_peak_bytes", resident)
        .field("resident_end_bytes", steps.back().resident)
        .field("fragmentation", static_cast<double>(resident) / static_cast<double>(live));
  write_report(recorder, team);

  static constexpr std::string_view kColumns[] = {"round", "step", "live_bytes", "resident_bytes"};
  auto& rows = recorder.series("steps", kColumns);
  for (std::size_t i = 0; i < steps.size(); ++i)
    rows.array()
        .value(i / Course::kSteps)
        .value(i % Course::kSteps)
        .value(steps[i].live)
        .value(steps[i].resident)
        .end();
  rows.end();
  recorder.write();
  return close_report(recorder, totals, course.known() ? "" : "/proc/self/smaps_rollup tells no resident memory");
}

bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const auto ledgers = open_ledgers(options.threads);
  sync::Barrier barrier(options.threads);
  Course course(ledgers);
  Team team(options, 0);
  auto body = [&](Team::Member& member) {
    Holder holder(settings, ledgers[member.index()], options.seed, member.index());
    work(settings, holder, course, barrier, member);
  };
  team.run(body);
  return conclude(course, ledgers, team, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "fragmentation",
             .summary = "memory taken over memory used, after the sizes of blocks have changed",
             .kinds = {SyncKind::none},
             .parameters = kParameters,
             .metrics = kOwnMetrics,
             .check = check,
             .run = run}};

}  // namespace
}  // namespace loam::workloads::allocation
