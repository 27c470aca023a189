// map: every thread looks keys up in one shared hash map, and inserts and removes some, over any synchronisation.
//   Source: the hash table of the users' requests to libraries of delegation; operations of the workload `intset`, with a
//   value for each key. Other than at a queue or a stack, operations do not meet in one word: what lets them run side by
//   side gains here.
//   Each pair is a block of the process's allocator, made and freed by the executor or by the client (alloc).
#include "workloads/objects/shared/map.hpp"
#include "runtime/platform/compiler.hpp"
#include "structures/hash_map.hpp"
#include "structures/plain_access.hpp"

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using namespace objects;

// The map of whatever lets operations run one at a time.
template <class SyncType>
class SyncedMap : public Counted<SyncType> {
 public:
  using Map = structures::HashMap;

  explicit SyncedMap(const MapSettings& settings) : allocates_(settings.allocates), map_(settings.buckets) {}

  bool find(std::int64_t key, std::int64_t& value) {
    const Found found = SyncType::read_only([this, key](auto& access) {
      this->note_turn();
      Found found{false, 0};
      found.found = map_.find(access, key, found.value);
      return found;
    });
    if (found.found) value = found.value;
    return found.found;
  }

  bool insert(std::int64_t key, std::int64_t value) {
    if (allocates_ == Allocates::executor)
      return SyncType::update([this, key, value](auto& access) {
        this->note_turn();
        return map_.insert(access, key, value);
      });
    structures::PlainAccess outside;
    Map::Node* const node = outside.create<Map::Node>(key, value, static_cast<Map::Node*>(nullptr));
    const bool linked = SyncType::update([this, node](auto& access) {
      this->note_turn();
      return map_.link(access, node);
    });
    if (!linked) outside.destroy(node);
    return linked;
  }

  bool remove(std::int64_t key, std::int64_t& value) {
    if (allocates_ == Allocates::executor) {
      const Found found = SyncType::update([this, key](auto& access) {
        this->note_turn();
        Found found{false, 0};
        found.found = map_.remove(access, key, found.value);
        return found;
      });
      value = found.value;
      return found.found;
    }
    struct Taken {
      Map::Node* node;
      std::int64_t value;
    };
    const Taken taken = SyncType::update([this, key](auto& access) {
      this->note_turn();
      Taken taken{nullptr, 0};
      taken.node = map_.unlink(access, key, taken.value);
      return taken;
    });
    if (taken.node == nullptr) return false;
    value = taken.value;
    structures::PlainAccess().destroy(taken.node);
    return true;
  }

  // At rest.
  MapRest rest() const { return rest_of_map(map_); }

 private:
  struct Found {
    bool found;
    std::int64_t value;
  };

  const Allocates allocates_;
  Map map_;
};

enum OperationKind { kFind, kInsert, kRemove };
constexpr LatencyNames kLatencies[] = {
    {"find_p50_ns", "find_p99_ns", "find_max_ns"},
    {"insert_p50_ns", "insert_p99_ns", "insert_max_ns"},
    {"remove_p50_ns", "remove_p99_ns", "remove_max_ns"},
};
static_assert(std::size(kLatencies) <= kKindsMax);
constexpr auto kMetrics = metrics_of(kLatencies);

// One copy (noipa) for both phases: the warm-up warms the code that is timed. returns how many it did
template <class Map>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate(Map& map, const MapSettings& settings, unsigned thread, MapWork& worker,
                                             base::Random& random, Pace& pace) {
  const std::uint64_t every = settings.latency_every,
                      update_below = (std::uint64_t{settings.update_percent} << 32) / 100;
  // Of each kind one after another.
  std::uint64_t operations = 0, left[kKindsMax] = {every / 2 + 1, every / 4 + 1, every / 4 + 1};
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; ++operations) {
      const std::uint64_t drawn = random();
      const std::int64_t key = base::scale_to(static_cast<std::uint32_t>(drawn), settings.range);
      std::int64_t value = value_of(key, thread);
      bool done = false;
      if (drawn >> 32 >= update_below) {
        timed(left[kFind], every, worker.ticks[kFind], [&] { done = map.find(key, value); });
        worker.hits += done;
        worker.foreign += key_of(value) != key;
      } else if (worker.outstanding == 0) {
        timed(left[kInsert], every, worker.ticks[kInsert], [&] { done = map.insert(key, value); });
        if (done) worker.outstanding = value;
      } else {
        const std::int64_t mine = worker.outstanding;
        timed(left[kRemove], every, worker.ticks[kRemove], [&] { done = map.remove(key_of(mine), value); });
        worker.lost += !done || value != mine;
        worker.outstanding = 0;
      }
      think(random, settings.think);
    }
  return operations;
}

template <class SyncType, class Map>
bool run_map(const Options& options, Recorder& recorder) {
  const MapSettings settings(options);
  const Workers<MapWork> workers(options.threads);
  const std::int64_t blocks_before = Map::live_blocks();
  Map map(settings);
  for (std::uint64_t i = 0; i < settings.elements; ++i)
    map.insert(initial_key(i), value_of(initial_key(i), kThreadsMax));
  map.forget_turns();
  SyncType::thread_exit();

  Team team(options, settings.duration_ms);
  drive<SyncType>(team, options, settings, workers,
                  [&](MapWork& worker, unsigned thread, base::Random& random, Pace& pace) {
                    return operate(map, settings, thread, worker, random, pace);
                  });

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  const MapRest rest = map.rest();
  return report(
      recorder, workers.all(),
      {.team = team,
       .settings = settings,
       .latencies = kLatencies,
       .tm = records,
       .turns = map.turns(),
       .pauses = pauses_of<SyncType>(),
       .mistake = mistake_of(workers.all(), settings, rest),
       .live_blocks_delta = Map::live_blocks() - blocks_before - static_cast<std::int64_t>(rest.verdict.elements),
       .live_bytes = rest.verdict.elements * sizeof(structures::HashMap::Node)});
}

template <class SyncType>
constexpr bool kBringsMap = requires { typename SyncType::Map; };

template <class SyncType>
bool run_on(const Options& options, Recorder& recorder) {
  if constexpr (kBringsMap<SyncType>)
    return run_map<SyncType, typename SyncType::Map>(options, recorder);
  else if constexpr (kBringsObjects<SyncType>)
    return false;  // it brings others: kinds() does not offer this one
  else
    return run_map<SyncType, SyncedMap<SyncType>>(options, recorder);
}

const base::Registration<Workload> registration{
    Workload{.name = "map",
             .summary = "every thread looks up, inserts and removes keys of one shared hash map",
             .kinds = kinds(kBringsMap<Sync>),
             .parameters = kMapParameters,
             .metrics = kMetrics,
             .check = [](const ParameterValues& values) { check_map(values, is_transactional<Sync>()); },
             .run =
                 [](const Options& options, Recorder& recorder) {
                   return options.blame ? run_on<BlameSync>(options, recorder) : run_on<Sync>(options, recorder);
                 }}};

}  // namespace
}  // namespace loam::workloads
