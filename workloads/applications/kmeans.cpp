// kmeans: clustering of points by the nearest centre, repeated until few points change.
//   Source: STAMP (Cao Minh et al., IISWC 2008); the algorithm and its inputs as published, written anew.
//   Each thread takes chunks of three points. One transaction per point adds it to the sums of its cluster: a count and
//   the attributes, cells of four bytes that share words and lines. Fewer clusters mean more conflicts.
//   The centres and the choice of the nearest one are plain. Blocks of sums lie side by side, each padded.
//   Empty clusters keep their centre; the published code looks at a pointer there instead of the count.
#include "workloads/applications/shared/application.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"
#include "workloads/applications/shared/points.hpp"

#include "runtime/base/bits.hpp"

#include <cfloat>
#include <cstring>
#include <memory>
#include <vector>

namespace loam::workloads::applications {
namespace {

constexpr std::string_view kContentions[] = {"high", "low"};
constexpr std::uint64_t kClustersHigh = 15, kClustersLow = 40;
constexpr std::uint64_t kChunk = 3, kIterationsMax = 500, kSeedOfCentres = 7;
constexpr float kNearerBy = 0.99999F;  // a later centre must be nearer by this factor: ties go to the first

constexpr std::string_view kPads[] = {"32", "64", "128"};
constexpr std::string_view kCellBytes[] = {"4", "8"};

constexpr ParameterSpec kOwnParameters[] = {
    ParameterSpec::choice("contention", kContentions, "high: 15 clusters; low: 40; unless clusters is given"),
    sized_parameter("points", 1 << 24, "1", "number of points; 0: as size says"),
    sized_parameter("attributes", 1024, "1", "of each point; 0: as size says"),
    sized_parameter("clusters", 1024, "1", "number of clusters to find; 0: as contention says"),
    sized_parameter("centres", 1024, "1", "around which the input is drawn; 0: 16"),
    sized_parameter("threshold_ppm", 1'000'000, "",
                    "stops when at most so many of a million points have changed; 0: as size says"),
    ParameterSpec::choice("pad", kPads, "a cluster's sums take a multiple of so many bytes"),
    ParameterSpec::choice("cell_bytes", kCellBytes, "8: each count and sum has a word of its own"),
};
constexpr auto kParameters = joined(kCommonParameters, kOwnParameters);

enum Site : unsigned { kAccumulate, kTakeChunk, kAddDelta };
constexpr std::string_view kSiteNames[] = {"tx_accumulate", "tx_take_chunk", "tx_add_delta"};
constexpr MetricSpec kOwnMetrics[] = {
    site_metric(kSiteNames[kAccumulate]),
    site_metric(kSiteNames[kTakeChunk]),
    site_metric(kSiteNames[kAddDelta]),
    {"iterations", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
    {"centres_digest", "1", MetricSpec::Better::neither, MetricSpec::Kind::count},
};
constexpr auto kMetrics = joined(kCommonMetrics, kOwnMetrics);

struct Settings {
  explicit Settings(const ParameterValues& parameters)
      : points(sized(parameters, "points", {16384, 2048, 16384, 65536})),
        attributes(sized(parameters, "attributes", {16, 16, 24, 32})),
        centres(sized(parameters, "centres", {16, 16, 16, 16})),
        threshold(
            static_cast<float>(static_cast<double>(sized(parameters, "threshold_ppm", {1000, 50000, 10, 10})) * 1e-6)),
        pad_bytes(parameters.choice("pad") == "32"   ? 32
                  : parameters.choice("pad") == "64" ? 64
                                                     : 128),
        cell_bytes(parameters.choice("cell_bytes") == "4" ? 4 : 8) {
    const auto by_contention =
        static_cast<std::int64_t>(parameters.choice("contention") == "high" ? kClustersHigh : kClustersLow);
    clusters = sized(parameters, "clusters", {by_contention, by_contention, by_contention, by_contention});
  }

  std::uint64_t points, attributes, clusters, centres;
  float threshold;
  std::uint64_t pad_bytes, cell_bytes;
};

void check(const ParameterValues& parameters) {
  const Settings settings(parameters);
  reject_if_too_large(parameters, static_cast<double>(settings.points) *
                                      static_cast<double>(settings.attributes * sizeof(float) + sizeof(std::int32_t)));
}

// A count or sum in so many bytes.
template <class Number, unsigned kBytes>
struct Cell;
template <class Number>
struct Cell<Number, 4> {
  Number number;
};
template <class Number>
struct alignas(8) Cell<Number, 8> {
  Number number;
  std::uint32_t unused = 0;
};

template <class SyncType>
class Kmeans {
 public:
  static constexpr std::span<const std::string_view> kSites = kSiteNames;

  explicit Kmeans(const Options& options) : settings_(options.parameters) {}

  void set_up(SetupAccess<SyncType>& access) {
    points_.resize(settings_.points * settings_.attributes);
    make_points({settings_.points, settings_.attributes, settings_.centres}, points_);
    centres_.resize(settings_.clusters * settings_.attributes);
    MersenneTwister random(kSeedOfCentres);
    for (std::uint64_t k = 0; k < settings_.clusters; ++k)
      std::memcpy(centre(k), point(random.below(settings_.points)), settings_.attributes * sizeof(float));
    membership_.assign(settings_.points, -1);
    block_bytes_ = base::round_up((1 + settings_.attributes) * settings_.cell_bytes, settings_.pad_bytes);
    sums_ = static_cast<std::byte*>(access.allocate(settings_.clusters * block_bytes_));
    shared_ = access.template create<Shared>();
    std::memset(sums_, 0, settings_.clusters * block_bytes_);
  }

  void work(Worker<SyncType>& worker) {
    if (settings_.cell_bytes == 4)
      iterate<4>(worker);
    else
      iterate<8>(worker);
  }

  Outcome verify(SetupAccess<SyncType>& access) {
    digest_ = 0xcbf29ce484222325u;
    for (const float value : centres_) {
      digest_ ^= std::bit_cast<std::uint32_t>(value);
      digest_ *= 0x100000001b3u;
    }
    access.release(sums_);
    access.destroy(shared_);
    if (miscounted_) return {.broken = "K1: the counts of each iteration add up to the number of points"};
    if (iterations_ < kIterationsMax && change_ > settings_.threshold)
      return {.broken = "K2: it ends only when few points have changed"};
    return {};
  }

  void add_to(base::JsonLine& line) const {
    line.field("iterations", iterations_).field("centres_digest", digest_ >> 16);
  }

 private:
  struct Shared {
    std::uint64_t next_point;
    float delta;
  };

  const float* point(std::uint64_t i) const noexcept { return &points_[i * settings_.attributes]; }
  float* centre(std::uint64_t k) noexcept { return &centres_[k * settings_.attributes]; }

  template <unsigned kBytes>
  Cell<std::int32_t, kBytes>& count_of(std::uint64_t k) noexcept {
    return *reinterpret_cast<Cell<std::int32_t, kBytes>*>(sums_ + k * block_bytes_);
  }
  template <unsigned kBytes>
  Cell<float, kBytes>* sums_of(std::uint64_t k) noexcept {
    return reinterpret_cast<Cell<float, kBytes>*>(sums_ + k * block_bytes_ + kBytes);
  }

  std::uint64_t nearest(const float* at) const noexcept {
    std::uint64_t found = 0;
    float best = FLT_MAX;
    for (std::uint64_t k = 0; k < settings_.clusters; ++k) {
      const float* const other = &centres_[k * settings_.attributes];
      float distance = 0;
      for (std::uint64_t j = 0; j < settings_.attributes; ++j) distance += (at[j] - other[j]) * (at[j] - other[j]);
      if (distance / best < kNearerBy) {
        best = distance;
        found = k;
      }
    }
    return found;
  }

  template <unsigned kBytes>
  void iterate(Worker<SyncType>& worker) {
    do {
      if (worker.is_first()) {
        shared_->next_point = kChunk * worker.threads();
        shared_->delta = 0;
      }
      worker.barrier();
      assign<kBytes>(worker);
      worker.barrier();
      if (worker.is_first()) {
        conclude<kBytes>();
        worker.did(settings_.points);
      }
      worker.barrier();
    } while (change_ > settings_.threshold && iterations_ < kIterationsMax);
  }

  // One pass of a thread over its chunks.
  template <unsigned kBytes>
  void assign(Worker<SyncType>& worker) {
    const std::uint64_t attributes = settings_.attributes;
    float delta = 0;
    for (std::uint64_t begin = kChunk * worker.index(); begin < settings_.points;) {
      const std::uint64_t end = std::min(begin + kChunk, settings_.points);
      for (std::uint64_t i = begin; i < end; ++i) {
        const float* const values = point(i);
        const std::uint64_t k = nearest(values);
        if (membership_[i] != static_cast<std::int32_t>(k)) delta += 1;
        membership_[i] = static_cast<std::int32_t>(k);
        auto& count = count_of<kBytes>(k);
        auto* const sums = sums_of<kBytes>(k);
        worker.update(kAccumulate, [&](auto& access) {
          access.write(count, {access.read(count).number + 1});
          for (std::uint64_t j = 0; j < attributes; ++j)
            access.write(sums[j], {access.read(sums[j]).number + values[j]});
          return true;
        });
      }
      if (begin + kChunk >= settings_.points) break;
      begin = worker.update(kTakeChunk, [&](auto& access) {
        const std::uint64_t next = access.read(shared_->next_point);
        access.write(shared_->next_point, next + kChunk);
        return next;
      });
    }
    worker.update(kAddDelta, [&](auto& access) {
      access.write(shared_->delta, access.read(shared_->delta) + delta);
      return true;
    });
  }

  // Between two passes, by one thread: new centres from the sums, which then are zero again.
  template <unsigned kBytes>
  void conclude() {
    std::uint64_t counted = 0;
    for (std::uint64_t k = 0; k < settings_.clusters; ++k) {
      const std::int32_t count = count_of<kBytes>(k).number;
      counted += static_cast<std::uint64_t>(count);
      if (count > 0)
        for (std::uint64_t j = 0; j < settings_.attributes; ++j)
          centre(k)[j] = sums_of<kBytes>(k)[j].number / static_cast<float>(count);
    }
    miscounted_ = miscounted_ || counted != settings_.points;
    std::memset(sums_, 0, settings_.clusters * block_bytes_);
    change_ = shared_->delta / static_cast<float>(settings_.points);
    ++iterations_;
  }

  const Settings settings_;
  std::vector<float> points_, centres_;
  std::vector<std::int32_t> membership_;
  std::byte* sums_ = nullptr;
  std::uint64_t block_bytes_ = 0;
  Shared* shared_ = nullptr;
  std::uint64_t iterations_ = 0, digest_ = 0;
  float change_ = 0;
  bool miscounted_ = false;
};

const base::Registration<Workload> registration{
    Workload{.name = "kmeans",
             .summary = "clusters points; tiny transactions on counters and sums; counts points times iterations",
             .kinds = kSharedData,
             .parameters = kParameters,
             .metrics = kMetrics,
             .check = check_application<check>,
             .run = run_application<Kmeans>}};

}  // namespace
}  // namespace loam::workloads::applications
