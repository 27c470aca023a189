// vacation: a travel agency's database. Clients reserve, cancel and change what is offered, one task per transaction.
//   Source: STAMP (Cao Minh et al., IISWC 2008); the algorithm and its inputs as published, written anew.
//   Four red-black trees hold cars, flights, rooms and customers; a customer has a list of reservations.
//   A reservation looks up several items twice each (once for what is free, once for the price), which is most of its
//   read set, and writes few words. All draws are made before the transaction, which sets its choices anew per attempt.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/travel.hpp"

#include <vector>

namespace loam::workloads::applications {
namespace {

using travel::Manager;
using travel::Table;

constexpr std::string_view kContentions[] = {"high", "low"};
constexpr std::uint64_t kPercent = 100;

constexpr ParameterSpec kOwnParameters[] = {
    ParameterSpec::choice("contention", kContentions,
                          "high: 4 queries of 60 % of the rows, 90 % reserve; low: 2 of 90 %, 98 % reserve"),
    sized_parameter("relations", 1 << 24, "1", "rows of each table; 0: as size says"),
    sized_parameter("tasks", 1 << 28, "1", "of all clients together; 0: as size says"),
    sized_parameter("queries", 64, "1", "the most that a task asks for; 0: as contention says"),
    sized_parameter("queried_percent", kPercent, "%", "part of the rows that is asked for; 0: as contention says"),
    sized_parameter("user_percent", kPercent, "%", "share of reservations; 0: as contention says"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kReserve, kDeleteCustomer, kUpdateTables };
constexpr std::string_view kSiteNames[] = {"tx_reserve", "tx_delete_customer", "tx_update_tables"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kReserve]),
    site_metric(kSiteNames[kDeleteCustomer]),
    site_metric(kSiteNames[kUpdateTables]),
    {"reserved", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"tables_digest", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : relations(sized(parameters, "relations", {16384, 16384, 131072, 1048576})),
        tasks(sized(parameters, "tasks", {32768, 4096, 262144, 4194304})) {
    const bool high = parameters.choice("contention") == "high";
    const auto by_contention = [&](std::string_view name, std::int64_t of_high, std::int64_t of_low) {
      const std::int64_t value = high ? of_high : of_low;
      return sized(parameters, name, {value, value, value, value});
    };
    queries = by_contention("queries", 4, 2);
    user_percent = by_contention("user_percent", 90, 98);
    const auto queried_percent = by_contention("queried_percent", 60, 90);
    query_range = std::max<std::uint64_t>(1, (queried_percent * relations + kPercent / 2) / kPercent);
  }

  std::uint64_t relations, tasks, queries, user_percent, query_range;
};

void check(const ParameterValues& parameters) {
  constexpr double kRowBytes = 4 * 64 + 3 * 48 + 2 * 32;  // nodes of four trees, three items, a customer with its list
  reject_if_too_large(parameters, static_cast<double>(Settings(parameters).relations) * kRowBytes);
}

// What a client has drawn for a task.
struct Query {
  Table table;
  std::int64_t id;
  std::int64_t price;  // of an update: below 0 to remove
};

template <class SyncType>
class Vacation {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Vacation(const Options& options) : settings_(options.parameters) {}

  void set_up(SetupAccess<SyncType>& access) {
    manager_.for_each_fixed_block([&](const void* block, std::size_t bytes) { access.note(block, bytes); });
    manager_.fill(access, settings_.relations);
  }

  void work(Worker<SyncType>& worker) {
    MersenneTwister random(worker.index());
    std::vector<Query> queries(settings_.queries);
    const auto part = worker.part_of(settings_.tasks);
    for (std::uint64_t task = part.begin; task < part.end; ++task) {
      const std::uint64_t choice = random.below(kPercent);
      if (choice < settings_.user_percent) {
        const std::span drawn = std::span(queries).first(random.below(settings_.queries) + 1);
        const auto customer = draw_id(random);
        for (auto& query : drawn) {
          query.table = static_cast<Table>(random.below(travel::kTables));
          query.id = draw_id(random);
        }
        reserve(worker, customer, drawn);
      } else if (choice % 2 == 1) {
        const auto customer = draw_id(random);
        worker.update(kDeleteCustomer, [&](auto& access) { return manager_.delete_customer(access, customer); });
      } else {
        const std::span drawn = std::span(queries).first(random.below(settings_.queries) + 1);
        for (auto& query : drawn) {
          query.table = static_cast<Table>(random.below(travel::kTables));
          query.id = draw_id(random);
          query.price = random.below(2) == 1 ? travel::draw_price(random) : -1;
        }
        update_tables(worker, drawn);
      }
    }
    worker.did(part.end - part.begin);
  }

  Outcome verify(SetupAccess<SyncType>&) {
    const auto found = manager_.verify(static_cast<std::int64_t>(settings_.relations));
    reserved_ = found.reserved;
    digest_ = found.digest;
    return {found.broken, found.blocks};
  }

  void add_to(base::JsonLine& line) const { line.field("reserved", reserved_).field("tables_digest", digest_ >> 16); }

 private:
  std::int64_t draw_id(MersenneTwister& random) const noexcept {
    return static_cast<std::int64_t>(random.below(settings_.query_range) + 1);
  }

  // Of each table the dearest item that was asked for, if any is free.
  void reserve(Worker<SyncType>& worker, std::int64_t customer, std::span<const Query> queries) {
    worker.update(kReserve, [&](auto& access) {
      std::int64_t best_price[travel::kTables] = {-1, -1, -1}, best_id[travel::kTables] = {-1, -1, -1};
      bool found = false;
      for (const auto& query : queries) {
        const auto table = static_cast<std::size_t>(query.table);
        if (manager_.free_of(access, query.table, query.id) < 0) continue;
        const std::int64_t price = manager_.price_of(access, query.table, query.id);
        if (price <= best_price[table]) continue;
        best_price[table] = price;
        best_id[table] = query.id;
        found = true;
      }
      if (found) manager_.add_customer(access, customer);
      for (std::size_t table = travel::kTables; table-- > 0;)
        if (best_id[table] > 0) manager_.reserve(access, static_cast<Table>(table), customer, best_id[table]);
      return true;
    });
  }

  void update_tables(Worker<SyncType>& worker, std::span<const Query> queries) {
    worker.update(kUpdateTables, [&](auto& access) {
      for (const auto& query : queries) {
        if (query.price >= 0) {
          manager_.add(access, query.table, query.id, travel::kStep, query.price);
        } else if (query.table == Table::flight) {
          manager_.remove_flight(access, query.id);
        } else {
          manager_.remove(access, query.table, query.id, travel::kStep);
        }
      }
      return true;
    });
  }

  const Settings settings_;
  Manager manager_;
  std::uint64_t reserved_ = 0, digest_ = 0;
};

const base::Registration<Workload> registration{
    Workload{.name = "vacation",
             .summary = "a travel agency's database of four trees; medium transactions, few writes; counts tasks",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Vacation>}};

}  // namespace
}  // namespace loam::workloads::applications
