// intset on the hand-written sets: the loop of workloads/transactional/intset.cpp with direct calls in place of the
// synchronisation.
#include "workloads/transactional/shared/intset.hpp"
#include "runtime/platform/compiler.hpp"
#include "workloads/peers/plain/hash.hpp"
#include "workloads/peers/plain/list.hpp"
#include "workloads/peers/plain/tree.hpp"

namespace loam::workloads::plain {
namespace {

using namespace intset;

template <class Set, class Keys>
LOAM_CALLED_AS_WRITTEN std::uint64_t operate(Set& set, Keys& thread_keys, WorkerResult& result, Pace& pace) {
  Keys keys = thread_keys;
  std::int64_t outstanding = result.outstanding;
  std::uint64_t operations = 0, hits = 0, lost = 0;
  for (std::uint64_t until; (until = pace.goes_on_until(operations)) > operations;)
    for (; operations < until; ++operations) {
      if (!keys.next_is_update()) {
        hits += set.contains(keys.key()) ? 1 : 0;
      } else if (outstanding == kNoKey) {
        const std::int64_t key = keys.key();
        if (set.insert(key)) outstanding = key;
      } else {
        if (!set.remove(outstanding)) ++lost;
        outstanding = kNoKey;
      }
    }
  thread_keys = keys;
  result.outstanding = outstanding;
  result.lookup_hits += hits;
  result.updates_lost += lost;
  return operations;
}

template <class Set, class Keys>
bool run(const Options& options, Recorder& recorder, const Settings& settings) {
  Set set;
  Keys filling(settings, 0);
  for (std::uint64_t filled = 0; filled < settings.elements;)
    if (set.insert(filling.next_key())) ++filled;

  Team team(options, settings.duration_ms);
  auto work = [&](Team::Member& member) {
    Keys keys(settings, member.index() + 1);
    WorkerResult& result = worker_results()[member.index()];
    member.wait_for_start();
    operate(set, keys, result, member.warm_up());
    member.timed([&](Pace& pace) { result.operations = operate(set, keys, result, pace); }, settings.operations);
  };
  team.run(work);

  const auto results = worker_results(options.threads);
  ContentCheck content(settings);
  const Check check = content.run(set, results);
  return report(recorder, results,
                {.team = team,
                 .tm = {},
                 .check = check,
                 .live_blocks_delta = set.live - static_cast<std::int64_t>(set.verify().elements)});
}

template <class Set>
bool run_with_keys(const Options& options, Recorder& recorder, const Settings& settings) {
  return settings.erand48 ? run<Set, Erand48Keys>(options, recorder, settings)
                          : run<Set, FastKeys>(options, recorder, settings);
}

bool run_intset(const Options& options, Recorder& recorder) {
  const Settings settings(options);
  if (settings.structure == "list") return run_with_keys<List>(options, recorder, settings);
  if (settings.structure == "tree") return run_with_keys<Tree>(options, recorder, settings);
  if (settings.multiplicative) return run_with_keys<Hash<2654435761u>>(options, recorder, settings);
  return run_with_keys<Hash<1>>(options, recorder, settings);
}

// Only these are written by hand; the description has every set that there is.
void check_parameters(const ParameterValues& parameters) {
  const std::string_view structure = parameters.choice("structure");
  if (structure != "list" && structure != "tree" && structure != "hash")
    reject("-p structure", structure, "plain has list, hash and tree alone", "choose another --sync");
  if (const std::string_view frees = parameters.choice("frees"); frees != "plain")
    reject("-p frees", frees, "plain frees plainly alone", "choose another --sync");
  workload(run_intset).check(parameters);
}

Workload hand_written() {
  Workload made = workload(run_intset);
  made.check = check_parameters;
  return made;
}

const base::Registration<Workload> registration{hand_written()};

}  // namespace
}  // namespace loam::workloads::plain
