// footprint: each operation is one transaction on `count` blocks of `size` bytes, the thread's own: what the place of blocks
// costs a transaction that conflicts with nobody.
//   use=write  writes the first word of each of its blocks, which were made before. A hardware transaction can write so
//              many lines in all and so many of one cache set: blocks whose size is a power of two lie in few sets.
//   use=make   makes the blocks and writes a word of each line of them; they are kept to the end. First touch of pages.
//   use=churn  makes the blocks, writes them, and frees them again: an allocator that needs nothing from outside.
//   Source: the questions of Dice, Harris, Kogan and Lev, "The influence of malloc placement on TSX hardware transactional
//   memory", 2015, as a workload for any synchronisation.
#include "workloads/transactional/shared/intset.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/compiler.hpp"
#include "runtime/platform/pages.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using intset::worker_results;

constexpr std::size_t kLineBytes = 64;
constexpr std::int64_t kKeptBytesMax = std::int64_t{1} << 30;  // of a thread that makes

constexpr std::string_view kUses[] = {"write", "make", "churn"};
constexpr ParameterSpec kParameters[] = {
    ParameterSpec::choice(
        "use", kUses,
        "write: the first words of blocks that are there; make: new blocks, which are kept; churn: new "
        "blocks, which are freed again"),
    ParameterSpec::integer("size", 1024, 16, 1 << 20, "B", "of a block").called("{}\u00a0B blocks"),
    ParameterSpec::integer("count", 16, 1, 4096, "1", "blocks of a transaction"),
    kTimedPart,
    ParameterSpec::integer("operations", 0, 0, std::int64_t{1} << 40, "1",
                           "operations per thread instead of a duration, without warm-up; 0: use duration_ms"),
};

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : use(parameters.choice("use")),
        size(static_cast<std::size_t>(parameters.integer("size"))),
        count(static_cast<std::size_t>(parameters.integer("count"))),
        operations(static_cast<std::uint64_t>(parameters.integer("operations"))) {}

  // Blocks that a thread has at the end.
  std::size_t kept() const noexcept {
    if (use == "churn") return 0;
    return use == "make" ? count * static_cast<std::size_t>(operations) : count;
  }

  std::string_view use;
  std::size_t size, count;
  std::uint64_t operations;
};

void check(const ParameterValues& parameters) {
  if (parameters.choice("use") != "make") return;
  const auto operations = parameters.integer("operations");
  if (operations == 0)
    reject("-p use", "make", "its blocks are kept, so it needs a number of operations", "add -p operations=1000");
  const auto bytes = parameters.integer("size") * parameters.integer("count");
  if (operations <= kKeptBytesMax / bytes) return;
  char value[32], limit[96];
  reject("-p operations", base::format_to(value, "{}", operations),
         base::format_to(limit, "a thread keeps at most {} bytes, and each operation makes {}", kKeptBytesMax, bytes),
         "lower operations, size or count");
}

std::int64_t& word(void* block, std::size_t at = 0) noexcept {
  return *reinterpret_cast<std::int64_t*>(static_cast<char*>(block) + at);
}

// The blocks of a thread, in memory that is no allocator's, and touched: a transaction's own first touch of it would be
// taken for one of the blocks.
class Kept {
 public:
  explicit Kept(std::size_t blocks) noexcept
      : bytes_((blocks + 1) * sizeof(void*)),
        first_(static_cast<void**>(platform::map_lazy_or_die(bytes_, "the addresses of a thread's blocks"))) {
    std::memset(first_, 0, bytes_);
  }
  ~Kept() { platform::unmap(first_, bytes_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  void** first() const noexcept { return first_; }

 private:
  std::size_t bytes_;
  void** first_;
};

// The rest of a block is written a word per line, as a program does that fills it.
template <class Access>
[[gnu::always_inline]] inline void* make_one(Access& access, std::size_t size, std::int64_t value) {
  void* const block = access.allocate(size);
  for (std::size_t at = 0; at + sizeof(std::int64_t) <= size; at += kLineBytes) access.write(word(block, at), value);
  return block;
}

template <class SyncType>
void write(void* const* blocks, std::size_t count, std::int64_t value) {
  SyncType::update([=](auto& access) __attribute__((flatten)) {
    for (std::size_t i = 0; i < count; ++i) access.write(word(blocks[i]), value);
    return true;
  });
}

template <class SyncType>
void make(void** blocks, std::size_t count, std::size_t size, std::int64_t value) {
  SyncType::update([=](auto& access) __attribute__((flatten)) {
    for (std::size_t i = 0; i < count; ++i) blocks[i] = make_one(access, size, value);
    return true;
  });
}

template <class SyncType>
void churn(std::size_t count, std::size_t size, std::int64_t value) {
  SyncType::update([=](auto& access) __attribute__((flatten)) {
    for (std::size_t i = 0; i < count; ++i) access.release(make_one(access, size, value));
    return true;
  });
}

template <class SyncType>
void free_one(void* block) {
  SyncType::update([=](auto& access) __attribute__((flatten)) {
    access.release(block);
    return true;
  });
}

// One copy (noipa) for both phases. first: how many this thread has done before; returns how many it did
template <class SyncType>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate(const Settings& settings, void** blocks, std::uint64_t first, Pace& pace) {
  std::uint64_t done = 0;
  const bool writes = settings.use == "write", keeps = settings.use == "make";
  const std::size_t count = settings.count, size = settings.size;
  for (std::uint64_t until; (until = pace.goes_on_until(done)) > done;)
    for (; done < until; ++done) {
      const auto value = static_cast<std::int64_t>(first + done + 1);
      if (writes)
        write<SyncType>(blocks, count, value);
      else if (keeps)
        make<SyncType>(blocks + done * count, count, size, value);
      else
        churn<SyncType>(count, size, value);
    }
  return done;
}

// Whether the blocks hold what the thread's operations have written last.
bool holds(const Settings& settings, void* const* blocks, std::uint64_t operations) noexcept {
  for (std::size_t i = 0; i < settings.kept(); ++i) {
    const std::uint64_t written = settings.use == "write" ? operations : i / settings.count + 1;
    if (word(blocks[i]) != static_cast<std::int64_t>(written)) return false;
  }
  return true;
}

template <class SyncType>
bool run(const Options& options, Recorder& recorder) {
  const Settings settings(options.parameters);
  const std::uint64_t limit = settings.operations == 0 ? ~std::uint64_t{0} : settings.operations;
  const auto duration_ms = static_cast<std::uint64_t>(options.parameters.integer("duration_ms"));
  const std::int64_t blocks_before = SyncType::live_blocks();
  std::atomic<bool> right{true};

  Team team(options, settings.operations == 0 ? duration_ms : 0);
  auto body = [&](Team::Member& member) {
    auto& result = worker_results()[member.index()];
    const Kept kept(settings.kept());
    if (settings.use == "write")
      for (std::size_t i = 0; i < settings.count; ++i) make<SyncType>(kept.first() + i, 1, settings.size, 0);
    member.wait_for_start();
    const std::uint64_t before = operate<SyncType>(settings, kept.first(), 0, member.warm_up());
    const TmCounters counted = tm_counters<SyncType>();
    member.timed([&](Pace& pace) { result.operations = operate<SyncType>(settings, kept.first(), before, pace); },
                 limit);
    (result.counters = tm_counters<SyncType>()) -= counted;
    if (!holds(settings, kept.first(), before + result.operations))
      right.store(false, std::memory_order_relaxed);  // relaxed: read after joining
    for (std::size_t i = 0; i < settings.kept(); ++i)
      if (kept.first()[i] != nullptr) free_one<SyncType>(kept.first()[i]);
    SyncType::thread_exit();
  };
  team.run(body);

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  const bool verified = right.load(std::memory_order_relaxed);  // relaxed: as above
  return intset::report(recorder, worker_results(options.threads),
                        {.team = team,
                         .tm = records,
                         .check = {verified, verified ? "" : "a block does not hold what its thread has written last"},
                         .live_blocks_delta = SyncType::live_blocks() - blocks_before});
}

bool run_footprint(const Options& options, Recorder& recorder) {
  return options.blame ? run<BlameSync>(options, recorder) : run<Sync>(options, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "footprint",
             .summary = "transactions on many blocks of one size: how much fits, first touch, allocation within",
             .kinds = {SyncKind::transactional, SyncKind::lock},
             .parameters = kParameters,
             .metrics = kRateMetrics,
             .check = check,
             .run = run_footprint}};

}  // namespace
}  // namespace loam::workloads
