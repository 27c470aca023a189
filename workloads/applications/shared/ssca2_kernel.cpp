#include "workloads/applications/shared/ssca2_kernel.hpp"

namespace loam::workloads::ssca2 {

std::string_view verify(const EdgeList& edges, const Arrays& arrays) {
  std::uint64_t distinct = 0;
  for (std::uint64_t i = 0; i < edges.size(); ++i) {
    const Vertex from = edges.start[i], to = edges.end[i];
    if (from >= arrays.vertices || to >= arrays.vertices) return "a vertex of an edge is not in the arrays";
    if (i > 0 && edges.start[i - 1] == from && edges.end[i - 1] == to) continue;
    if (distinct == arrays.out_edges || arrays.out_vertices[distinct] != to || arrays.parallel_index[distinct] != i)
      return "the out-neighbours are not those of the edges";
    if (distinct < arrays.out_index[from] || distinct >= arrays.out_index[from] + arrays.out_degree[from])
      return "an out-neighbour stands in another vertex's part";
    ++distinct;
  }
  if (distinct != arrays.out_edges) return "there are more out-neighbours than edges";

  std::uint64_t degrees = 0;
  std::vector<Vertex> sources;
  for (Vertex v = 0; v < arrays.vertices; ++v) {
    if (arrays.in_index[v] != degrees) return "the in-neighbours' index is not the sum of the degrees";
    const auto* const first = arrays.in_vertices.get() + arrays.in_index[v];
    sources.assign(first, first + arrays.in_degree[v]);
    std::sort(sources.begin(), sources.end());
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Vertex from = sources[i];
      if (i > 0 && sources[i - 1] == from) return "an implied edge was appended twice";
      if (from >= arrays.vertices) return "an implied edge comes from no vertex";
      const auto leads = [&](Vertex a, Vertex b) {
        const auto* const begin = arrays.out_vertices.get() + arrays.out_index[a];
        return std::binary_search(begin, begin + arrays.out_degree[a], b);
      };
      if (!leads(from, v)) return "an implied edge has no edge";
      if (leads(v, from)) return "an implied edge was appended although the edge back is there";
    }
    degrees += arrays.in_degree[v];
  }
  if (degrees != one_way_pairs(edges)) return "implied edges are lost: fewer than pairs with an edge one way";
  return {};
}

std::uint64_t in_degree_checksum(const Arrays& arrays) noexcept {
  std::uint64_t sum = 0;
  for (Vertex v = 0; v < arrays.vertices; ++v) sum = sum * 31 + arrays.in_degree[v];
  return sum;
}

}  // namespace loam::workloads::ssca2
