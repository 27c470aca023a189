// intset: a set of integers shared by all threads, over any synchronisation.
//   Source: the integer-set benchmark of the STM literature; parameters and rules as in the study `stm`.
//   The main thread inserts `elements` keys; then each thread, with probability update_percent, updates, else looks up.
//   Updates alternate per thread: insert a uniform key (present: nothing is written, and the next update is again an
//   insert); the next update removes the key that this thread inserted last.
// Dispatch is by type once per run; the loop holds no indirect call.
#include "workloads/transactional/shared/intset.hpp"
#include "workloads/transactional/shared/overwriting.hpp"

#include "runtime/platform/compiler.hpp"
#include "structures/sets.hpp"

#include LOAM_SYNC_HEADER

namespace loam::workloads {
namespace {

using namespace intset;

// The structure's code becomes part of the operation, as a hand-written benchmark has it: an access policy that lives
// in registers would go through memory at every call.
#define LOAM_WHOLE __attribute__((flatten))

template <class SyncType, class Set>
bool insert(Set& set, std::int64_t key) {
  return SyncType::update([&set, key](auto& access) LOAM_WHOLE { return set.insert(access, key); });
}

template <class SyncType, class Set>
bool remove(Set& set, std::int64_t key) {
  return SyncType::update([&set, key](auto& access) LOAM_WHOLE { return set.remove(access, key); });
}

template <class SyncType, class Set>
bool remove_overwriting(Set& set, std::int64_t key) {
  return SyncType::update([&set, key](auto& access) LOAM_WHOLE {
    Overwriting over(access);
    return set.remove(over, key);
  });
}

template <class SyncType, class Set>
bool contains(const Set& set, std::int64_t key) {
  return SyncType::read_only([&set, key](auto& access) LOAM_WHOLE { return set.contains(access, key); });
}

// The worker's loop: as long as the pace goes on. Everything it touches per operation is local, but the pace.
// One copy (noipa) for both phases: the warm-up warms the code that is timed. returns how many it did
template <class SyncType, class Set, class Keys>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate(Set& set, bool overwrites, Keys& thread_keys, WorkerResult& result,
                                             Pace& pace) {
  Keys keys = thread_keys;
  std::int64_t outstanding = result.outstanding;
  std::uint64_t operations = 0, hits = 0, lost = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; ++operations) {
      if (!keys.next_is_update()) {
        hits += contains<SyncType>(set, keys.key()) ? 1 : 0;
      } else if (outstanding == kNoKey) {
        const std::int64_t key = keys.key();
        if (insert<SyncType>(set, key)) outstanding = key;
      } else {
        if (!(overwrites ? remove_overwriting<SyncType>(set, outstanding) : remove<SyncType>(set, outstanding))) ++lost;
        outstanding = kNoKey;
      }
    }
  thread_keys = keys;
  result.outstanding = outstanding;
  result.lookup_hits += hits;
  result.updates_lost += lost;
  return operations;
}

template <class SyncType, class Set, class Keys>
void work(Set& set, const Settings& settings, Team::Member& member) {
  Keys keys(settings, member.index() + 1);
  WorkerResult& result = worker_results()[member.index()];
  member.wait_for_start();
  operate<SyncType>(set, settings.overwrites, keys, result, member.warm_up());

  const TmCounters before = tm_counters<SyncType>();
  member.timed([&](Pace& pace) { result.operations = operate<SyncType>(set, settings.overwrites, keys, result, pace); },
               settings.operations);
  (result.counters = tm_counters<SyncType>()) -= before;
  SyncType::thread_exit();
}

template <class SyncType, class Set, class Keys>
bool run(const Options& options, Recorder& recorder, const Settings& settings) {
  Set set;
  std::uint64_t fixed_bytes = 0;
  set.for_each_fixed_block([&fixed_bytes](const void* block, std::size_t bytes) {
    SyncType::note_block(block, bytes);
    fixed_bytes += bytes;
  });
  const std::int64_t blocks_before = SyncType::live_blocks();
  Keys filling(settings, 0);
  for (std::uint64_t filled = 0; filled < settings.elements;)
    if (insert<SyncType>(set, filling.next_key())) ++filled;
  // The main thread sleeps from here on: registered, it would be a reader whose idleness others have to make sure of.
  SyncType::thread_exit();

  Team team(options, settings.duration_ms);
  auto body = [&](Team::Member& member) { work<SyncType, Set, Keys>(set, settings, member); };
  team.run(body);

  const auto records = tm_records<SyncType>();
  SyncType::quiesce();
  const auto results = worker_results(options.threads);
  ContentCheck content(settings);
  const Check check = content.run(set, results);
  const auto nodes = static_cast<std::int64_t>(set.verify().elements);
  return report(recorder, results,
                {.team = team,
                 .tm = records,
                 .check = check,
                 .live_blocks_delta = SyncType::live_blocks() - blocks_before - nodes,
                 .live_bytes = fixed_bytes + static_cast<std::uint64_t>(nodes) * sizeof(typename Set::Node)});
}

template <class SyncType, class Set>
bool run_with_keys(const Options& options, Recorder& recorder, const Settings& settings) {
  return settings.erand48 ? run<SyncType, Set, Erand48Keys>(options, recorder, settings)
                          : run<SyncType, Set, FastKeys>(options, recorder, settings);
}

template <class SyncType>
bool run_with_structure(const Options& options, Recorder& recorder) {
  using namespace structures;
  const Settings settings(options);
  return Sets::visit(settings.structure, [&]<class Named>() {
    if (settings.multiplicative)
      return run_with_keys<SyncType, typename Named::template Set<Multiplicative>>(options, recorder, settings);
    return run_with_keys<SyncType, typename Named::template Set<Identity>>(options, recorder, settings);
  });
}

bool run_intset(const Options& options, Recorder& recorder) {
  return options.blame ? run_with_structure<BlameSync>(options, recorder) : run_with_structure<Sync>(options, recorder);
}

const base::Registration<Workload> registration{workload(run_intset)};

}  // namespace
}  // namespace loam::workloads
