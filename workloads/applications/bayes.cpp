// bayes: learns which variables depend on which from records of their values, by hill climbing.
//   Source: STAMP (Cao Minh et al., IISWC 2008), after Chickering, Heckerman and Meek, UAI 1997; the algorithm and its
//   records as published, written anew.
//   What it stresses: few, long transactions. Those that look for the best next change hold what they have read while they
//   compute scores from a tree of counts, of which each is plain.
//   A list holds tasks, those first that improve the score most: insert, remove or reverse an edge. A worker takes one, applies it if no circle
//   comes of it, updates the scores, and looks for the next best change of the same variable.
//   Caveat: with two threads and more, what is learned and how much work that takes depend on who comes first: compare
//   ops_per_s, tasks by time.
//   Other than the published code: removals and reversals compare ids with ids, which makes tasks fewer; a removal may be
//   worth its penalty; the list is in order of what tasks improve, not of whole scores of different times; scratch memory
//   is reset by each attempt; the network, the scores and their sum are verified.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/bayes_network.hpp"

#include "runtime/base/format.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace loam::workloads::applications {
namespace {

using namespace bayes;

constexpr std::int64_t kRecordsMax = 1 << 20, kEdgesMax = 16, kPercent = 100;

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("variables", kVariablesMax, "1", "number of variables, 2 or more; 0: as size says"),
    sized_parameter("records", kRecordsMax, "1", "records to learn from; 0: as size says"),
    sized_parameter("parents", kEdgesMax, "1", "most parents of a variable in the network to learn; 0: as size says"),
    sized_parameter("parent_percent", kPercent, "%", "chance of each of these parents; 0: as size says"),
    sized_parameter("insert_penalty", 1000, "1", "how many parents a new one is charged for; 0: as size says"),
    sized_parameter("edges", kEdgesMax, "1", "a variable that has more parents gets no further one; 0: as size says"),
    ParameterSpec::integer("quality_percent", 100, 100, 10'000, "%",
                           "a change is taken if its score exceeds the best so far, which is negative, over this"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned {
  kAddBase,
  kAddFirstTask,
  kPop,
  kApply,
  kRecompute,
  kCountParents,
  kAddDelta,
  kBestInsert,
  kBestRemove,
  kBestReverse,
  kAddTask
};
constexpr std::string_view kSiteNames[] = {"tx_add_base",    "tx_add_first_task", "tx_pop",       "tx_apply",
                                           "tx_recompute",   "tx_count_parents",  "tx_add_delta", "tx_best_insert",
                                           "tx_best_remove", "tx_best_reverse",   "tx_add_task"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kAddBase]),    site_metric(kSiteNames[kAddFirstTask]),
    site_metric(kSiteNames[kPop]),        site_metric(kSiteNames[kApply]),
    site_metric(kSiteNames[kRecompute]),  site_metric(kSiteNames[kCountParents]),
    site_metric(kSiteNames[kAddDelta]),   site_metric(kSiteNames[kBestInsert]),
    site_metric(kSiteNames[kBestRemove]), site_metric(kSiteNames[kBestReverse]),
    site_metric(kSiteNames[kAddTask]),    {"edges_learned", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : data{.variables = static_cast<unsigned>(sized(parameters, "variables", {32, 32, 32, 32})),
             .records = static_cast<unsigned>(sized(parameters, "records", {512, 1024, 2048, 4096})),
             .parents_max = static_cast<unsigned>(sized(parameters, "parents", {10, 2, 10, 10})),
             .parent_percent = static_cast<unsigned>(sized(parameters, "parent_percent", {40, 20, 40, 40})),
             .seed = parameters.choice("size") == "sim" ? 0u : 1u},
        insert_penalty(static_cast<std::int64_t>(sized(parameters, "insert_penalty", {1, 2, 1, 2}))),
        edges_max(static_cast<unsigned>(sized(parameters, "edges", {6, 2, 8, 8}))),
        quality(static_cast<float>(parameters.integer("quality_percent")) / static_cast<float>(kPercent)),
        penalty(static_cast<float>(-0.5 * std::log(static_cast<double>(data.records)))) {}

  DataSettings data;
  std::int64_t insert_penalty;
  unsigned edges_max;
  float quality;
  float penalty;  // of a parent
};

void check(const ParameterValues& parameters) {
  const Settings settings(parameters);
  if (settings.data.variables < 2) reject("-p variables", "1", "an edge takes 2 variables or more");
  // Trees of 1024 and 4096 records of 32 variables have fewer nodes than this. Sets of some six variables still have
  // records that differ in them, and their number grows with the sixth power.
  const double nodes = 3000.0 * settings.data.records * std::pow(settings.data.variables / 32.0, 6);
  reject_if_too_large(parameters, nodes * 64.0);
}

template <class SyncType>
class Bayes {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Bayes(const Options& options)
      : settings_(options.parameters), variables_(settings_.data.variables), tasks_(variables_) {}

  void set_up(SetupAccess<SyncType>& access) {
    data_ = make_data(settings_.data);
    counts_.emplace(data_.records, variables_);
    network_.emplace(access, variables_);
    likelihoods_ = static_cast<float*>(access.allocate(variables_ * sizeof(float)));
    for (unsigned i = 0; i < variables_; ++i) {
      likelihoods_[i] = 0;
      tasks_[i].to = static_cast<std::int32_t>(i);
    }
  }

  void work(Worker<SyncType>& worker) {
    create_tasks(worker);
    worker.barrier();
    learn(worker);
  }

  Outcome verify(SetupAccess<SyncType>& access) {
    const auto found = network_->verify();
    edges_ = found.edges;
    float sum = 0;
    bool is_own = true;
    for (unsigned i = 0; i < variables_; ++i) {
      const Parents parents = network_->parents(access, i);
      is_own = is_own && likelihoods_[i] == counts_->log_likelihood(i, parents.all());
      sum += likelihoods_[i];
    }
    learned_ = score(edges_, sum);
    actual_ = actual_score();
    access.release(likelihoods_);
    Outcome outcome{.broken = found.broken, .reachable_blocks = 1 + 2 * edges_};  // the network's array and nodes
    const auto check = [&](bool holds, std::string_view what) {
      if (outcome.broken.empty() && !holds) outcome.broken = what;
    };
    check(is_own, "B1: a variable's likelihood is the one of its parents");
    check(shared_.parents == edges_, "B2: the number of parents is the number of edges");
    check(std::abs(shared_.likelihood - sum) <= 1e-3F * std::abs(sum), "B3: the likelihoods add up to the sum");
    check(remaining_.verify().elements == 0, "B4: no task is left");
    return outcome;
  }

  void add_to(base::JsonLine& line) const {
    line.field("score_learned", static_cast<double>(learned_))
        .field("score_actual", static_cast<double>(actual_))
        .field("edges_learned", edges_);
  }

 private:
  struct Shared {
    float likelihood = 0;
    std::int64_t parents = 0;
  };
  // What a search for the next change goes by.
  struct View {
    float likelihood;
    std::int64_t parents;
  };

  float score(std::int64_t parents, float likelihood) const {
    return static_cast<float>(parents) * settings_.penalty + static_cast<float>(settings_.data.records) * likelihood;
  }

  float actual_score() const {
    float likelihood = 0;
    std::int64_t parents = 0;
    for (unsigned i = 0; i < variables_; ++i) {
      parents += static_cast<std::int64_t>(data_.parents[i].size());
      likelihood += counts_->log_likelihood(i, data_.parents[i]);
    }
    return score(parents, likelihood);
  }

  void create_tasks(Worker<SyncType>& worker) {
    const auto mine = worker.part_of(variables_);
    float sum = 0;
    for (auto i = mine.begin; i < mine.end; ++i) {
      likelihoods_[i] = counts_->log_likelihood(static_cast<unsigned>(i), {});
      sum += likelihoods_[i];
    }
    worker.update(kAddBase, [&](auto& access) {
      access.write(shared_.likelihood, access.read(shared_.likelihood) + sum);
      return true;
    });
    for (auto i = mine.begin; i < mine.end; ++i) {
      const auto to = static_cast<unsigned>(i);
      float best = likelihoods_[i];
      unsigned best_from = to;
      for (unsigned from = 0; from < variables_; ++from) {
        if (from == to) continue;
        const float found = counts_->log_likelihood(to, {&from, 1});
        if (found <= best) continue;
        best = found;
        best_from = from;
      }
      if (best_from == to) continue;
      add_task(worker, kAddFirstTask, task_of(Change::insert, best_from, to, score(1, best - likelihoods_[i])));
    }
  }

  static Task task_of(Change change, unsigned from, unsigned to, float score) {
    return {change, score, static_cast<std::int32_t>(from), static_cast<std::int32_t>(to)};
  }

  // The slot of the task's variable is not in the list.
  void add_task(Worker<SyncType>& worker, Site site, const Task& task) {
    Task* const slot = &tasks_[static_cast<std::size_t>(task.to)];
    TaskOrder::fill(*slot, task);
    worker.update(site, [&](auto& access) {
      remaining_.insert(access, slot);
      return true;
    });
  }

  void learn(Worker<SyncType>& worker) {
    for (;;) {
      const Task* const slot = worker.update(kPop, [&](auto& access) {
        Task* const* const first = remaining_.first(access);
        Task* const next = first == nullptr ? nullptr : *first;
        if (next != nullptr) remaining_.remove(access, next);
        return next;
      });
      if (slot == nullptr) return;
      const Task task = *slot;
      const bool applied = worker.update(kApply, [&](auto& access) { return network_->apply(access, task); });
      const float delta = applied ? update_scores(worker, task) : 0;
      const View view = worker.update(kAddDelta, [&](auto& access) {
        const float likelihood = access.read(shared_.likelihood) + delta;
        access.write(shared_.likelihood, likelihood);
        return View{likelihood, access.read(shared_.parents)};
      });
      worker.did(1);
      find_next(worker, static_cast<unsigned>(task.to), view);
    }
  }

  // returns by how much the likelihood has changed
  float update_scores(Worker<SyncType>& worker, const Task& task) {
    float delta = recompute(worker, static_cast<unsigned>(task.to));
    if (task.change == Change::reverse) return delta + recompute(worker, static_cast<unsigned>(task.from));
    const std::int64_t more = task.change == Change::insert ? 1 : -1;
    worker.update(kCountParents, [&](auto& access) {
      access.write(shared_.parents, access.read(shared_.parents) + more);
      return true;
    });
    return delta;
  }

  float recompute(Worker<SyncType>& worker, unsigned id) {
    return worker.update(kRecompute, [&](auto& access) {
      const float before = access.read(likelihoods_[id]);
      const Parents parents = network_->parents(access, id);
      const float now = counts_->log_likelihood(id, parents.all());
      access.write(likelihoods_[id], now);
      return now - before;
    });
  }

  void find_next(Worker<SyncType>& worker, unsigned to, const View& view) {
    const float now = score(view.parents, view.likelihood);
    Task best = task_of(Change::none, to, to, now);
    const auto consider = [&](const Task& candidate) {
      if (candidate.change != Change::none && candidate.score > best.score / settings_.quality) best = candidate;
    };
    consider(worker.update(kBestInsert, [&](auto& access) { return best_insert(access, to, view); }));
    consider(worker.update(kBestRemove, [&](auto& access) { return best_remove(access, to, view); }));
    consider(worker.update(kBestReverse, [&](auto& access) { return best_reverse(access, to, view); }));
    if (best.change == Change::none) return;
    best.score -= now;
    add_task(worker, kAddTask, best);
  }

  template <class Access>
  Task best_insert(Access& access, unsigned to, const View& view) {
    const Parents parents = network_->parents(access, to);
    Variables excluded = network_->reachable(access, to);
    for (const unsigned parent : parents.all()) excluded |= Variables{1} << parent;
    const float before = access.read(likelihoods_[to]);
    float best = before;
    unsigned best_from = to;
    for (unsigned from = 0; parents.count <= settings_.edges_max && from < variables_; ++from) {
      if ((excluded >> from & 1) != 0) continue;
      Parents more = parents;
      more.add(from);
      const float found = counts_->log_likelihood(to, more.all());
      if (found <= best) continue;
      best = found;
      best_from = from;
    }
    if (best_from == to) return task_of(Change::none, to, to, 0);
    return task_of(
        Change::insert, best_from, to,
        score(view.parents + (parents.count + 1) * settings_.insert_penalty, view.likelihood + best - before));
  }

  template <class Access>
  Task best_remove(Access& access, unsigned to, const View& view) {
    const Parents parents = network_->parents(access, to);
    const float before = access.read(likelihoods_[to]);
    // A variable is never likelier with a parent less. What the removal is worth is the penalty of a parent: the score
    // tells.
    float best = -std::numeric_limits<float>::infinity();
    unsigned best_from = to;
    for (const unsigned from : parents.all()) {
      Parents fewer = parents;
      fewer.remove(from);
      const float found = counts_->log_likelihood(to, fewer.all());
      if (found <= best) continue;
      best = found;
      best_from = from;
    }
    if (best_from == to) return task_of(Change::none, to, to, 0);
    return task_of(Change::remove, best_from, to, score(view.parents - 1, view.likelihood + best - before));
  }

  template <class Access>
  Task best_reverse(Access& access, unsigned to, const View& view) {
    const Parents parents = network_->parents(access, to);
    const float before = access.read(likelihoods_[to]);
    float best = 0;
    unsigned best_from = to;
    for (const unsigned from : parents.all()) {
      Parents fewer = parents, more = network_->parents(access, from);
      fewer.remove(from);
      more.add(to);
      const float found = counts_->log_likelihood(to, fewer.all()) + counts_->log_likelihood(from, more.all()) -
                          before - access.read(likelihoods_[from]);
      if (found <= best) continue;
      best = found;
      best_from = from;
    }
    if (best_from == to || network_->reverse_closes(access, best_from, to)) return task_of(Change::none, to, to, 0);
    return task_of(Change::reverse, best_from, to, score(view.parents, view.likelihood + best));
  }

  const Settings settings_;
  const unsigned variables_;
  Data data_;
  std::optional<Counts> counts_;
  std::optional<Network> network_;
  float* likelihoods_ = nullptr;  // of each variable given its parents
  Shared shared_;
  std::vector<Task> tasks_;  // one slot per variable, in the list or in the hands of a worker
  Tasks remaining_;
  float learned_ = 0, actual_ = 0;
  std::int64_t edges_ = 0;
};

const base::Registration<Workload> registration{
    Workload{.name = "bayes",
             .summary = "learns a network of dependencies; few transactions that compute for long; counts tasks",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Bayes>}};

}  // namespace
}  // namespace loam::workloads::applications
