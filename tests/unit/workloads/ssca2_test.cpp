// ssca2: its graphs have the published numbers of edges; kernel 1 builds the same arrays with any number of threads;
// the check finds what is wrong.
#include "tests/unit/workloads/application_threads.hpp"
#include "workloads/applications/shared/ssca2_kernel.hpp"

#include <gtest/gtest.h>
#include <utility>

namespace loam::workloads::ssca2 {
namespace {

constexpr GraphSettings kSmall{.scale = 10, .inter_percent = 100, .unidirectional_percent = 100, .parallel_max = 3};

TEST(Ssca2, GraphHasThePublishedNumbersOfEdges) {
  const GraphSettings settings{.scale = 17, .inter_percent = 100, .unidirectional_percent = 100, .parallel_max = 3};
  const EdgeList edges = make_graph(settings);
  EXPECT_EQ(edges.intra, 1'358'050u);
  EXPECT_EQ(edges.inter, 182'526u);
  EXPECT_EQ(one_way_pairs(edges), 1'418'791u);
}

TEST(Ssca2, EdgesAreSortedAndParallelOnesBounded) {
  const GraphSettings settings{.scale = 9, .inter_percent = 50, .unidirectional_percent = 20, .parallel_max = 3};
  const EdgeList edges = make_graph(settings);
  unsigned parallel = 1, most = 1, between = 0;
  for (std::uint64_t i = 1; i < edges.size(); ++i) {
    const auto before = std::pair(edges.start[i - 1], edges.end[i - 1]), now = std::pair(edges.start[i], edges.end[i]);
    EXPECT_LE(before, now);
    EXPECT_NE(edges.start[i], edges.end[i]);
    parallel = before == now ? parallel + 1 : 1;
    most = std::max(most, parallel);
    between += before == now ? 0 : 1;
  }
  EXPECT_GT(most, 1u);
  EXPECT_EQ(edges.size(), edges.intra + edges.inter);
  EXPECT_GT(between, settings.vertices());
}

TEST(Ssca2, KernelBuildsTheSameWithAnyNumberOfThreads) {
  const EdgeList edges = make_graph(kSmall);
  Kernel alone(edges, kSmall.clique_max(), 1);
  const auto one = run_threads<structures::Alone>(alone, 1);
  EXPECT_EQ(verify(edges, alone.result()), "");
  EXPECT_EQ(one[kAppend], one_way_pairs(edges));
  for (const unsigned threads : {1u, 3u}) {
    Kernel kernel(edges, kSmall.clique_max(), threads);
    const auto sites = run_threads<structures::Transaction>(kernel, threads);
    EXPECT_EQ(verify(edges, kernel.result()), "");
    EXPECT_EQ(in_degree_checksum(kernel.result()), in_degree_checksum(alone.result()));
    EXPECT_EQ(sites[kAppend], one[kAppend]);
    EXPECT_EQ(sites[kLargestVertex], threads);
    EXPECT_EQ(sites[kCountEdges], threads);
  }
}

// With room for one edge per vertex nearly all go into further blocks, several for one vertex.
TEST(Ssca2, FurtherRoomHoldsWhatDoesNotFit) {
  const EdgeList edges = make_graph(kSmall);
  const std::int64_t before = structures::Transaction::live_blocks();
  Kernel kernel(edges, 1, 2);
  run_threads<structures::Transaction>(kernel, 2);
  EXPECT_EQ(verify(edges, kernel.result()), "");
  std::int64_t further = 0;
  for (Vertex v = 0; v < kernel.result().vertices; ++v)
    further += static_cast<std::int64_t>(std::max<std::uint64_t>(kernel.result().in_degree[v], 1)) - 1;
  EXPECT_GT(further, 1000);
  EXPECT_EQ(kernel.blocks(), further);
  EXPECT_EQ(structures::Transaction::live_blocks(), before + further);
}

TEST(Ssca2, VerifyFindsWhatIsWrong) {
  const EdgeList edges = make_graph(kSmall);
  Kernel kernel(edges, kSmall.clique_max(), 1);
  run_threads<structures::Alone>(kernel, 1);
  auto& arrays = const_cast<Arrays&>(kernel.result());
  const auto broken = [&](auto& word, std::uint64_t value) {
    const auto right = std::exchange(word, value);
    const std::string_view found = verify(edges, arrays);
    word = right;
    EXPECT_EQ(verify(edges, arrays), "");
    return found;
  };
  Vertex v = 0;
  while (arrays.in_degree[v] < 2) ++v;
  auto* const in = arrays.in_vertices.get() + arrays.in_index[v];
  EXPECT_EQ(broken(in[0], in[1]), "an implied edge was appended twice");
  EXPECT_EQ(broken(in[0], arrays.vertices), "an implied edge comes from no vertex");
  EXPECT_EQ(broken(in[0], v), "an implied edge has no edge");
  EXPECT_EQ(broken(arrays.in_degree[v], 1), "the in-neighbours' index is not the sum of the degrees");
  EXPECT_EQ(broken(arrays.in_degree[arrays.vertices - 1], 0),
            "implied edges are lost: fewer than pairs with an edge one way");
  EXPECT_EQ(broken(arrays.out_vertices[0], arrays.vertices), "the out-neighbours are not those of the edges");
}

}  // namespace
}  // namespace loam::workloads::ssca2
