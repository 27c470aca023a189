#include "workloads/applications/shared/ssca2_graph.hpp"

#include "workloads/applications/shared/mersenne_twister.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace loam::workloads::ssca2 {
namespace {

constexpr double kPercent = 100.0;

class Generator {
 public:
  explicit Generator(const GraphSettings& settings)
      : settings_(settings),
        vertices_(settings.vertices()),
        unidirectional_(settings.unidirectional_percent / kPercent) {}

  EdgeList make() {
    permute();
    draw_cliques();
    for (const Clique& clique : cliques_) connect(clique);
    const std::uint64_t intra = edges_.size();
    connect_cliques();
    const std::uint64_t inter = edges_.size() - intra;

    std::sort(edges_.begin(), edges_.end());
    EdgeList list;
    list.intra = intra;
    list.inter = inter;
    list.start.reserve(edges_.size());
    list.end.reserve(edges_.size());
    for (const auto& [start, end] : edges_) {
      list.start.push_back(start);
      list.end.push_back(end);
    }
    return list;
  }

 private:
  struct Clique {
    std::uint64_t first, size;
  };

  std::uint64_t below(std::uint64_t count) { return random_.below(count); }
  double fraction() { return static_cast<double>(below(1000)) / 1000.0; }

  void permute() {
    name_.resize(vertices_);
    for (std::uint64_t i = 0; i < vertices_; ++i) name_[i] = static_cast<std::uint32_t>(i);
    for (std::uint64_t i = 0; i < vertices_; ++i) std::swap(name_[i], name_[i + below(vertices_ - i)]);
  }

  // Half as many sizes again as are needed on the average are drawn, as the original does: the draws after them depend
  // on how many they were.
  void draw_cliques() {
    const std::uint64_t size_max = settings_.clique_max();
    const auto mean = static_cast<double>((1 + size_max) / 2);
    std::vector<std::uint64_t> sizes(
        static_cast<std::size_t>(std::ceil(1.5 * static_cast<double>(vertices_) / std::max(mean, 1.0))));
    for (auto& size : sizes) size = 1 + below(size_max);
    clique_of_.resize(vertices_);
    std::uint64_t first = 0;
    const auto add = [&](std::uint64_t size) {
      std::fill_n(clique_of_.begin() + static_cast<std::ptrdiff_t>(first), size,
                  static_cast<std::uint32_t>(cliques_.size()));
      cliques_.push_back({first, size});
      first += size;
    };
    for (const auto size : sizes)
      if (first < vertices_) add(std::min(size, vertices_ - first));
    while (first < vertices_) add(std::min(1 + below(size_max), vertices_ - first));
  }

  void connect(const Clique& clique) {
    const std::uint64_t size = clique.size, first = clique.first;
    // How often an ordered pair of the clique has an edge.
    counts_.assign(size * size, 0);
    const auto add_one = [&](std::uint64_t from, std::uint64_t to) {
      ++counts_[from * size + to];
      add(first + from, first + to);
    };
    for (std::uint64_t i = 0; i < size; ++i)
      for (std::uint64_t j = 0; j < i; ++j) {
        const double r = fraction();
        if (r >= unidirectional_) {
          add_one(i, j);
          add_one(j, i);
        } else if (r >= 0.5) {
          add_one(i, j);
        } else {
          add_one(j, i);
        }
      }
    if (size == 1) return;
    const std::uint64_t tries = below(2 * size * settings_.parallel_max);
    for (std::uint64_t i = 0; i < tries; ++i) {
      const std::uint64_t from = below(size), to = below(size);
      if (from == to || counts_[from * size + to] >= settings_.parallel_max) continue;
      if (fraction() >= unidirectional_) add_one(from, to);
    }
  }

  void connect_cliques() {
    const auto connect = [this](std::uint64_t from, std::uint64_t to) {
      if (clique_of_[from] == clique_of_[to]) return;
      const std::uint64_t copies = 1 + below(settings_.parallel_max);
      for (std::uint64_t i = 0; i < copies; ++i) add(from, to);
    };
    for (std::uint64_t i = 0; i < vertices_; ++i) {
      double chance = settings_.inter_percent / kPercent;
      for (std::uint64_t distance = 1; distance < vertices_; distance *= 2, chance /= 2) {
        if (fraction() <= chance) connect(i, (i + distance) % vertices_);
        if (fraction() <= chance) connect(i, (i + vertices_ - distance) % vertices_);
      }
    }
  }

  void add(std::uint64_t from, std::uint64_t to) { edges_.emplace_back(name_[from], name_[to]); }

  const GraphSettings& settings_;
  const std::uint64_t vertices_;
  const double unidirectional_;
  applications::MersenneTwister random_{0};
  std::vector<std::uint32_t> name_, clique_of_;
  std::vector<Clique> cliques_;
  std::vector<unsigned> counts_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

}  // namespace

EdgeList make_graph(const GraphSettings& settings) { return Generator(settings).make(); }

std::uint64_t graph_bytes(const GraphSettings& settings) noexcept {
  const std::uint64_t vertices = settings.vertices(), clique = settings.clique_max();
  const std::uint64_t copies = settings.unidirectional_percent == 100 ? 1 : 2 + 2 * settings.parallel_max;
  // A clique of a random size has a third of the pairs of the largest; between cliques there are few.
  const std::uint64_t edges = vertices * (clique * copies / 3 + 4 * std::uint64_t{settings.parallel_max});
  constexpr std::uint64_t kEdge = 5 * sizeof(Vertex), kVertex = 8 * sizeof(Vertex);
  return edges * kEdge + vertices * (kVertex + clique * sizeof(Vertex));
}

std::uint64_t one_way_pairs(const EdgeList& edges) {
  std::vector<std::uint64_t> first;  // of each start vertex; as far as there are any
  for (std::uint64_t i = 0; i < edges.size(); ++i)
    while (first.size() <= edges.start[i]) first.push_back(i);
  const auto leads = [&](Vertex from, Vertex to) {
    if (from >= first.size()) return false;
    const auto begin = edges.end.begin() + static_cast<std::ptrdiff_t>(first[from]);
    const auto end =
        from + 1 < first.size() ? edges.end.begin() + static_cast<std::ptrdiff_t>(first[from + 1]) : edges.end.end();
    return std::binary_search(begin, end, to);
  };
  std::uint64_t pairs = 0;
  for (std::uint64_t i = 0; i < edges.size(); ++i) {
    const Vertex from = edges.start[i], to = edges.end[i];
    const bool again = i > 0 && edges.start[i - 1] == from && edges.end[i - 1] == to;
    if (!again && !leads(to, from)) ++pairs;
  }
  return pairs;
}

}  // namespace loam::workloads::ssca2
