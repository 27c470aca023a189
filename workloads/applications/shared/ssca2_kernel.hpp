// Kernel 1 of ssca2: from a sorted list of edges to arrays of out- and in-neighbours, by all threads together.
//   All phases are separated by barriers; each thread has its part of the edges or of the vertices. What is stressed is
//   phase 6: tiny transactions, each a read and two writes to two cache lines, that hardly ever meet.
//   Caveat: result() and verify() are for when all threads have left work().
#pragma once

#include "workloads/applications/shared/ssca2_graph.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>

namespace loam::workloads::ssca2 {

// The sites of its transactions.
enum Site : unsigned { kLargestVertex, kCountEdges, kAppend };

// The arrays of kernel 1. Index: where a vertex's part of a list begins; that of the vertex after the last is the end.
struct Arrays {
  std::uint64_t vertices = 0, out_edges = 0;
  std::unique_ptr<std::uint64_t[]> out_degree, out_index, in_degree, in_index;
  std::unique_ptr<Vertex[]> out_vertices, in_vertices;
  std::unique_ptr<std::uint64_t[]> parallel_index;  // of an out-neighbour: its first edge in the list of edges
};

// Whether the arrays say what the edges say. returns what is wrong, empty if nothing is
std::string_view verify(const EdgeList& edges, const Arrays& arrays);

// A number that depends on each in-degree and its vertex.
std::uint64_t in_degree_checksum(const Arrays& arrays) noexcept;

// Worker: index(), is_first(), part_of(count), barrier(), did(count) and update(site, operation), as
// shared/worker.hpp has them.
class Kernel {
 public:
  Kernel(const EdgeList& edges, std::uint64_t room_per_vertex, unsigned threads)
      : edges_(edges), room_(room_per_vertex), sums_(new std::uint64_t[threads]) {}
  ~Kernel() {
    for (Vertex v = 0; v < arrays_.vertices; ++v)
      for (More *more = more_[v], *next; more != nullptr; more = next) {
        next = more->next;
        std::free(more);
      }
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  template <class Worker>
  void work(Worker& worker) {
    find_largest_vertex(worker);
    worker.barrier();
    const auto vertices = worker.part_of(globals_.largest_vertex + 1);
    if (worker.is_first()) make_out_arrays();
    worker.barrier();
    count_out_degrees(vertices);
    const std::uint64_t out_edges = sum_up(worker, arrays_.out_degree.get(), arrays_.out_index.get());
    worker.update(kCountEdges, [&](auto& access) {
      access.write(globals_.out_edges, access.read(globals_.out_edges) + out_edges);
      return true;
    });
    worker.barrier();
    if (worker.is_first()) make_in_arrays();
    worker.barrier();
    fill_out_vertices(vertices);
    clear_in_arrays(vertices);
    worker.barrier();
    append_implied_edges(worker);
    worker.barrier();
    sum_up(worker, arrays_.in_degree.get(), arrays_.in_index.get());
    if (worker.is_first()) arrays_.in_vertices.reset(new Vertex[arrays_.in_index[arrays_.vertices]]);
    worker.barrier();
    fill_in_vertices(vertices);
  }

  const Arrays& result() const noexcept { return arrays_; }

  // Blocks that transactions have allocated.
  std::int64_t blocks() const noexcept {
    std::int64_t count = 0;
    for (Vertex v = 0; v < arrays_.vertices; ++v)
      for (const More* more = more_[v]; more != nullptr; more = more->next) ++count;
    return count;
  }

 private:
  // Room for further implied edges of a vertex, as many as its part of `implied_` has; `slots` follow.
  struct More {
    More* next;  // the one before it
    Vertex* slots() noexcept { return reinterpret_cast<Vertex*>(this + 1); }
  };
  struct Globals {
    Vertex largest_vertex = 0;
    std::uint64_t out_edges = 0;
  };

  template <class Worker>
  void find_largest_vertex(Worker& worker) {
    const auto edges = worker.part_of(edges_.size());
    Vertex largest = 0;
    for (std::uint64_t i = edges.begin; i < edges.end; ++i)
      largest = std::max({largest, edges_.start[i], edges_.end[i]});
    worker.update(kLargestVertex, [&](auto& access) {
      if (access.read(globals_.largest_vertex) < largest) access.write(globals_.largest_vertex, largest);
      return true;
    });
  }

  void make_out_arrays() {
    arrays_.vertices = globals_.largest_vertex + 1;
    arrays_.out_degree.reset(new std::uint64_t[arrays_.vertices]);
    arrays_.out_index.reset(new std::uint64_t[arrays_.vertices + 1]);
  }

  // Calls visit(vertex, first edge) for each out-neighbour of the vertices, parallel edges once.
  template <class Range, class Visit>
  void for_each_neighbour(Range vertices, Visit&& visit) const {
    const auto begin = std::lower_bound(edges_.start.begin(), edges_.start.end(), vertices.begin);
    for (auto i = static_cast<std::uint64_t>(begin - edges_.start.begin());
         i < edges_.size() && edges_.start[i] < vertices.end; ++i)
      if (i == 0 || edges_.start[i - 1] != edges_.start[i] || edges_.end[i - 1] != edges_.end[i])
        visit(edges_.start[i], i);
  }

  template <class Range>
  void count_out_degrees(Range vertices) {
    for (Vertex v = vertices.begin; v < vertices.end; ++v) arrays_.out_degree[v] = 0;
    for_each_neighbour(vertices, [this](Vertex v, std::uint64_t) { ++arrays_.out_degree[v]; });
  }

  // index[v] = the sum of all degrees before v's; index[vertices] = all. returns the sum of this thread's vertices
  template <class Worker>
  std::uint64_t sum_up(Worker& worker, const std::uint64_t* degree, std::uint64_t* index) {
    const auto vertices = worker.part_of(arrays_.vertices);
    std::uint64_t sum = 0;
    for (Vertex v = vertices.begin; v < vertices.end; ++v) sum += degree[v];
    sums_[worker.index()] = sum;
    worker.barrier();
    std::uint64_t before = 0;
    for (unsigned i = 0; i < worker.index(); ++i) before += sums_[i];
    for (Vertex v = vertices.begin; v < vertices.end; ++v) {
      index[v] = before;
      before += degree[v];
    }
    if (vertices.end == arrays_.vertices) index[vertices.end] = before;
    worker.barrier();
    return sum;
  }

  void make_in_arrays() {
    arrays_.out_edges = globals_.out_edges;
    arrays_.out_vertices.reset(new Vertex[arrays_.out_edges]);
    arrays_.parallel_index.reset(new std::uint64_t[arrays_.out_edges]);
    arrays_.in_degree.reset(new std::uint64_t[arrays_.vertices]);
    arrays_.in_index.reset(new std::uint64_t[arrays_.vertices + 1]);
    implied_.reset(new Vertex[arrays_.vertices * room_]);
    more_.reset(new More*[arrays_.vertices]);
  }

  template <class Range>
  void fill_out_vertices(Range vertices) {
    std::uint64_t at = arrays_.out_index[vertices.begin];
    for_each_neighbour(vertices, [&](Vertex, std::uint64_t edge) {
      arrays_.out_vertices[at] = edges_.end[edge];
      arrays_.parallel_index[at++] = edge;
    });
  }

  template <class Range>
  void clear_in_arrays(Range vertices) {
    for (Vertex v = vertices.begin; v < vertices.end; ++v) {
      arrays_.in_degree[v] = 0;
      more_[v] = nullptr;
    }
    std::fill(implied_.get() + vertices.begin * room_, implied_.get() + vertices.end * room_, Vertex{0});
  }

  std::span<const Vertex> out_neighbours(Vertex v) const noexcept {
    return {arrays_.out_vertices.get() + arrays_.out_index[v], arrays_.out_degree[v]};
  }

  // What is timed for: vertices that are led to and do not lead back are given the edge as an implied one.
  template <class Worker>
  void append_implied_edges(Worker& worker) {
    const auto vertices = worker.part_of(arrays_.vertices);
    std::uint64_t appended = 0;
    for (Vertex i = vertices.begin; i < vertices.end; ++i)
      for (const Vertex v : out_neighbours(i)) {
        const auto back = out_neighbours(v);
        if (std::find(back.begin(), back.end(), i) != back.end()) continue;
        worker.update(kAppend, [&](auto& access) {
          append(access, v, i);
          return true;
        });
        ++appended;
      }
    worker.did(appended);
  }

  template <class Access>
  void append(Access& access, Vertex v, Vertex from) {
    const std::uint64_t degree = access.read(arrays_.in_degree[v]);
    access.write(arrays_.in_degree[v], degree + 1);
    if (degree < room_) {
      access.write(implied_[v * room_ + degree], from);
    } else {
      append_more(access, v, degree % room_, from);
    }
  }

  template <class Access>
  [[gnu::noinline, gnu::cold]] void append_more(Access& access, Vertex v, std::uint64_t slot, Vertex from) {
    More* more = access.read(more_[v]);
    if (slot == 0) {
      More* const fresh = static_cast<More*>(access.allocate(sizeof(More) + room_ * sizeof(Vertex)));
      access.write(fresh->next, more);
      access.write(more_[v], fresh);
      more = fresh;
    }
    access.write(more->slots()[slot], from);
  }

  template <class Range>
  void fill_in_vertices(Range vertices) {
    for (Vertex v = vertices.begin; v < vertices.end; ++v) {
      const std::uint64_t degree = arrays_.in_degree[v];
      Vertex* const to = arrays_.in_vertices.get() + arrays_.in_index[v];
      std::copy_n(implied_.get() + v * room_, std::min(degree, room_), to);
      std::uint64_t end = degree;
      for (More* more = more_[v]; more != nullptr; more = more->next) {
        const std::uint64_t count = (end - 1) % room_ + 1;
        end -= count;
        std::copy_n(more->slots(), count, to + end);
      }
    }
  }

  const EdgeList& edges_;
  const std::uint64_t room_;
  std::unique_ptr<std::uint64_t[]> sums_;
  Globals globals_;
  Arrays arrays_;
  std::unique_ptr<Vertex[]> implied_;
  std::unique_ptr<More*[]> more_;
};

}  // namespace loam::workloads::ssca2
