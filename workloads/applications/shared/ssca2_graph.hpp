// The graph of ssca2: vertices in cliques of random sizes, and edges between cliques whose number halves with distance.
//   Source: kernel 1 of the graph benchmark SSCA#2 as the STAMP suite has it; the draws are in its order, so that graphs
//   have its numbers of edges. Weights are left out: kernel 1 does not read them, and they are drawn last.
#pragma once

#include <cstdint>
#include <vector>

namespace loam::workloads::ssca2 {

using Vertex = std::uint64_t;

struct GraphSettings {
  unsigned scale;                   // log2 of the vertices
  unsigned inter_percent;           // chance of an edge to the next vertex, halved each time the distance doubles
  unsigned unidirectional_percent;  // chance that a pair has one edge, not two
  unsigned parallel_max;            // edges from one vertex to the same other one

  std::uint64_t vertices() const noexcept { return std::uint64_t{1} << scale; }
  std::uint64_t clique_max() const noexcept { return std::uint64_t{1} << (scale / 3); }
};

// Edge i leads from start[i] to end[i]. Sorted by start, then by end: parallel edges stand side by side.
struct EdgeList {
  std::vector<Vertex> start, end;
  std::uint64_t intra = 0, inter = 0;  // within cliques, between them

  std::uint64_t size() const noexcept { return start.size(); }
};

EdgeList make_graph(const GraphSettings& settings);

// The bytes that the graph and kernel 1 need at most, about.
std::uint64_t graph_bytes(const GraphSettings& settings) noexcept;

// Ordered pairs (from, to) with an edge from -> to and none back, without parallel ones.
std::uint64_t one_way_pairs(const EdgeList& edges);

}  // namespace loam::workloads::ssca2
