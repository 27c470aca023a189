// labyrinth: connects pairs of cells in a grid by paths that do not cross.
//   Source: STAMP (Cao Minh et al., IISWC 2008), whose router is Lee's; the algorithm and its mazes as published, written
//   anew.
//   What it stresses: few, very long transactions, nearly all of the time within them; they conflict where paths cross.
//   A transaction copies the grid without telling anybody (copy=unlogged), plans a path in its copy, then reads the cells
//   of the path and makes them full. A cell that is full by then means that the copy was stale: the transaction begins
//   again. So the read set is the path alone. Cells that others filled since and that are not in the path do no harm.
//   copy=before plans outside of the transaction, for hardware whose transactions are small; copy=logged reads every cell
//   through the transaction.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/labyrinth_maze.hpp"
#include "workloads/applications/shared/labyrinth_router.hpp"

#include "runtime/base/format.hpp"
#include "structures/list.hpp"
#include "structures/ring_queue.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace loam::workloads::applications {
namespace {

using namespace labyrinth;

constexpr std::string_view kCopies[] = {"unlogged", "before", "logged"};
constexpr std::uint64_t kCellsMax = std::uint64_t{1} << 31;

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("width", 1 << 14, "1", "cells in x; 0: as size says"),
    sized_parameter("height", 1 << 14, "1", "cells in y; 0: as size says"),
    sized_parameter("depth", 1 << 10, "1", "cells in z; 0: as size says"),
    sized_parameter("paths", 1 << 20, "1", "pairs of cells to connect; 0: as size says"),
    ParameterSpec::choice("copy", kCopies,
                          "how a path is planned: in a copy of the grid that the transaction makes without logging it; "
                          "in one made before the transaction; in one whose every cell is a transactional read"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kTakePair, kRoute, kGiveResults };
constexpr std::string_view kSiteNames[] = {"tx_take_pair", "tx_route", "tx_give_results"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kTakePair]),
    site_metric(kSiteNames[kRoute]),
    site_metric(kSiteNames[kGiveResults]),
    {"paths_routed", "1", MetricSpec::Better::higher, MetricSpec::Kind::count},
    {"cells_filled", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : size{static_cast<std::uint32_t>(sized(parameters, "width", {48, 32, 256, 512})),
             static_cast<std::uint32_t>(sized(parameters, "height", {48, 32, 256, 512})),
             static_cast<std::uint32_t>(sized(parameters, "depth", {3, 3, 5, 7}))},
        paths(static_cast<std::uint32_t>(sized(parameters, "paths", {64, 96, 256, 512}))),
        copy(parameters.choice("copy")) {}

  Size size;
  std::uint32_t paths;
  std::string_view copy;
};

void check(const ParameterValues& parameters) {
  const Settings settings(parameters);
  const std::uint64_t cells = settings.size.cells();
  char value[32], limit[96];
  if (cells < 2 || cells > kCellsMax)
    reject("-p width x height x depth", base::format_to(value, "{}", cells),
           base::format_to(limit, "a grid has 2 to {} cells", kCellsMax), "change width, height or depth");
  constexpr double kBytesPerCell = 3.0 * sizeof(Cell);  // the grid, the copy and its front; of one thread
  reject_if_too_large(parameters, static_cast<double>(cells) * kBytesPerCell);
}

template <class SyncType>
class Labyrinth {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Labyrinth(const Options& options) : settings_(options.parameters), results_(options.threads) {}

  void set_up(SetupAccess<SyncType>& access) {
    maze_ = make_maze(settings_.size, settings_.paths);
    const auto cells = maze_.grid();
    grid_ = static_cast<Cell*>(access.allocate(cells.size() * sizeof(Cell)));
    std::copy(cells.begin(), cells.end(), grid_);
    pairs_.emplace(access, static_cast<std::int64_t>(settings_.paths) + 2);
    for (const Pair& pair : maze_.pairs) pairs_->push(access, &pair);
  }

  void work(Worker<SyncType>& worker) {
    Router router(settings_.size);
    Results& results = results_[worker.index()];
    for (;;) {
      const Pair* const pair = worker.update(kTakePair, [&](auto& access) {
        const Pair* next = nullptr;
        pairs_->pop(access, next);
        return next;
      });
      if (pair == nullptr) break;
      if (route(worker, router, *pair)) {
        const auto cells = router.path();
        results.push_back({*pair, {cells.begin(), cells.end()}});
      }
      worker.did(1);
    }
    const Results* const mine = &results;
    worker.update(kGiveResults, [&](auto& access) {
      given_.insert(access, mine);
      return true;
    });
  }

  Outcome verify(SetupAccess<SyncType>& access) {
    std::vector<Path> paths;
    std::int64_t given = 0;
    given_.for_each([&](const Results* results) {
      paths.insert(paths.end(), results->begin(), results->end());
      ++given;
    });
    routed_ = paths.size();
    for (const Path& path : paths) filled_ += path.cells.size() - 2;
    const std::string_view broken = labyrinth::verify(maze_, paths, {grid_, settings_.size.cells()});
    access.release(grid_);
    if (given != static_cast<std::int64_t>(results_.size())) return {.broken = "a thread's results were lost"};
    return {.broken = broken, .reachable_blocks = 1 + given};  // the queue's array and the nodes of the list
  }

  void add_to(base::JsonLine& line) const { line.field("paths_routed", routed_).field("cells_filled", filled_); }

 private:
  using Results = std::vector<Path>;
  enum class Plan { none, stale, laid };

  bool route(Worker<SyncType>& worker, Router& router, const Pair& pair) {
    const bool before = settings_.copy == "before", logged = settings_.copy == "logged";
    for (;;) {
      if (before) {
        router.copy(grid_);
        if (!router.route(pair)) return false;
      }
      const Plan plan = worker.update(kRoute, [&](auto& access) {
        if (!before) {
          if (logged)
            router.copy(grid_, [&](const Cell& cell) { return access.read(cell); });
          else
            router.copy(grid_);
          if (!router.route(pair)) return Plan::none;
        }
        if (lay(access, router)) return Plan::laid;
        if constexpr (kRestarts<SyncType>)
          if (!before) SyncType::restart();
        return Plan::stale;  // nothing has been written
      });
      if (plan != Plan::stale) return plan == Plan::laid;
    }
  }

  // Makes the path's cells full, but for its ends. False, and nothing is written, if one of them is.
  template <class Access>
  bool lay(Access& access, const Router& router) {
    const auto path = router.path();
    for (std::size_t i = 1; i + 1 < path.size(); ++i)
      if (access.read(grid_[path[i]]) != kEmpty) return false;
    for (std::size_t i = 1; i + 1 < path.size(); ++i) access.write(grid_[path[i]], kFull);
    return true;
  }

  const Settings settings_;
  std::vector<Results> results_;
  Maze maze_;
  Cell* grid_ = nullptr;
  std::optional<structures::RingQueue<const Pair*>> pairs_;
  structures::List<const Results*> given_;
  std::uint64_t routed_ = 0, filled_ = 0;
};

const base::Registration<Workload> registration{
    Workload{.name = "labyrinth",
             .summary = "routes paths through a grid; few transactions, very long ones; counts pairs",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Labyrinth>}};

}  // namespace
}  // namespace loam::workloads::applications
