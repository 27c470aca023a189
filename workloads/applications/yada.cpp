// yada: refines a triangulation until no angle is too small.
//   Source: Ruppert's algorithm as STAMP has it (Cao Minh et al., IISWC 2008); the algorithm and its meshes as published,
//   written anew.
//   What it stresses: long transactions that allocate some 40 blocks each, and free about 10; memory that others may still
//   read as it is freed.
//   A heap holds the bad elements. A worker takes one, refines it in one transaction, and puts the new bad ones back.
//   Other than the published code: an element that became garbage after it was taken is not refined; an element that is
//   met twice while a cavity grows is looked at once; a segment that was split is freed; a segment never makes another one
//   go away; the mesh is verified.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/delaunay.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"
#include "workloads/applications/shared/yada_edge_table.hpp"
#include "workloads/applications/shared/yada_input.hpp"
#include "workloads/applications/shared/yada_mesh.hpp"

#include "structures/binary_heap.hpp"

#include <bit>
#include <cmath>
#include <optional>
#include <vector>

namespace loam::workloads::applications {
namespace {

using namespace yada;

constexpr std::int64_t kPointsMax = 1 << 24, kMilliDegrees = 1000, kAngleMax = 20'700;

constexpr ParameterSpec kOwnParameters[] = {
    sized_parameter("points", kPointsMax, "1", "corners of the first mesh, 3 or more; 0: as size says"),
    sized_parameter(
        "angle", kAngleMax, "1/1000 degree",
        "no angle of the result is smaller; the algorithm ends for sure up to 20.7 degrees; 0: as size says"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kTake, kIsGarbage, kRefine, kUnreference, kTransfer, kFree, kAddUp };
constexpr std::string_view kSiteNames[] = {"tx_take",     "tx_is_garbage", "tx_refine", "tx_unreference",
                                           "tx_transfer", "tx_free",       "tx_add_up"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kTake]),
    site_metric(kSiteNames[kIsGarbage]),
    site_metric(kSiteNames[kRefine]),
    site_metric(kSiteNames[kUnreference]),
    site_metric(kSiteNames[kTransfer]),
    site_metric(kSiteNames[kFree]),
    site_metric(kSiteNames[kAddUp]),
    {"elements_first", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"elements_bad", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"elements_last", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : points(sized(parameters, "points", {5000, 633, 100'000, 1'000'000})),
        angle(static_cast<double>(sized(parameters, "angle", {20'000, 20'000, 20'000, 15'000})) / kMilliDegrees) {}

  std::uint64_t points;
  double angle;
};

void check(const ParameterValues& parameters) {
  const Settings settings(parameters);
  if (settings.points < 3) reject("-p points", settings.points == 1 ? "1" : "2", "a mesh has at least 3 points");
  // Two elements per point at first, twice as many at the end, each with its list.
  constexpr double kBytesPerPoint = 4.0 * (sizeof(Element) + sizeof(Neighbours) + 7 * 32.0) + 300.0;
  reject_if_too_large(parameters, static_cast<double>(settings.points) * kBytesPerPoint);
}

template <class SyncType>
class Yada {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Yada(const Options& options)
      : settings_(options.parameters), mesh_(AngleLimit::of_degrees(settings_.angle)) {}

  void set_up(SetupAccess<SyncType>& access) {
    const auto points = make_points(settings_.points);
    const auto triangulation = geometry::triangulate(points);
    std::vector<Element*> bad;
    EdgeTable edges(3 * (triangulation.triangles.size() + triangulation.hull.size()));
    mesh_.add_input(access, points, triangulation, edges, [&](Element* element) {
      ++first_;
      area_ += element->area();
      if (element->is_bad()) bad.push_back(element);
    });
    bad_ = bad.size();
    // The published order: the first queue's, shuffled by as many swaps as it has elements.
    MersenneTwister random(0);
    for (std::size_t i = 0; i < bad.size(); ++i) {
      const auto a = random.below(bad.size()), b = random.below(bad.size());
      std::swap(bad[a], bad[b]);
    }
    heap_.emplace(access, std::bit_ceil(bad.size() + 1));
    for (Element* const element : bad) {
      element->referenced = 1;
      heap_->insert(access, element);
    }
  }

  void work(Worker<SyncType>& worker) {
    Cavity cavity;
    std::int64_t added = 0, processed = 0;
    while (Element* const element = take(worker)) {
      if (worker.update(kIsGarbage, [&](auto& access) { return Mesh::is_garbage(access, element); })) {
        free(worker, element);
        continue;
      }
      added += worker.update(kRefine, [&](auto& access) {
        cavity.clear_bad();
        return mesh_.refine(access, element, cavity);
      });
      const bool garbage = worker.update(kUnreference, [&](auto& access) {
        access.write(element->referenced, 0);
        return Mesh::is_garbage(access, element);
      });
      if (garbage) free(worker, element);
      worker.update(kTransfer, [&](auto& access) {
        for (Element* const bad : cavity.bad()) {
          if (Mesh::is_garbage(access, bad)) {
            Mesh::destroy(access, bad);
          } else {
            heap_->insert(access, bad);
          }
        }
        return true;
      });
      ++processed;
    }
    worker.did(static_cast<std::uint64_t>(processed));
    worker.update(kAddUp, [&](auto& access) {
      access.write(totals_.added, access.read(totals_.added) + added);
      access.write(totals_.processed, access.read(totals_.processed) + processed);
      return true;
    });
  }

  Outcome verify(SetupAccess<SyncType>&) {
    const auto found = mesh_.verify(settings_.angle, area_);
    last_ = found.elements;
    Outcome outcome{.broken = found.broken, .reachable_blocks = found.blocks + 1};  // the heap's array
    if (outcome.broken.empty() && heap_->verify().elements != 0) outcome.broken = "bad elements are left in the heap";
    if (outcome.broken.empty() && last_ != static_cast<std::int64_t>(first_) + totals_.added)
      outcome.broken = "elements of the mesh are not those at first and those added";
    return outcome;
  }

  void add_to(base::JsonLine& line) const {
    line.field("elements_first", first_).field("elements_bad", bad_).field("elements_last", last_);
  }

 private:
  struct Totals {
    std::int64_t added = 0, processed = 0;
  };

  Element* take(Worker<SyncType>& worker) {
    return worker.update(kTake, [&](auto& access) {
      Element* element = nullptr;
      heap_->remove(access, element);
      return element;
    });
  }

  // Others may still be reading it: it is freed as a transaction frees.
  void free(Worker<SyncType>& worker, Element* element) {
    worker.update(kFree, [&](auto& access) {
      Mesh::destroy(access, element);
      return true;
    });
  }

  const Settings settings_;
  Mesh mesh_;
  std::optional<structures::BinaryHeap<Element*, WorkOrder>> heap_;
  Totals totals_;
  double area_ = 0;
  std::uint64_t first_ = 0, bad_ = 0;
  std::int64_t last_ = 0;
};

const base::Registration<Workload> registration{
    Workload{.name = "yada",
             .summary = "refines a mesh of triangles; long transactions with many allocations; counts refinements",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Yada>}};

}  // namespace
}  // namespace loam::workloads::applications
