// Network: which variable depends on which, as lists of parents and of children; and the tasks that change it.
//   N1 no way leads from a variable back to it.   N2 lists of parents and of children say the same.
#pragma once

#include "structures/list.hpp"
#include "workloads/applications/shared/bayes_counts.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace loam::workloads::bayes {

struct ById {
  LOAM_PURE_IN_TRANSACTIONS static int compare(std::int64_t a, std::int64_t b) noexcept {
    return a < b ? -1 : a > b ? 1 : 0;
  }
};
using Ids = structures::List<std::int64_t, ById>;

// Parents of a variable, ascending: a copy that belongs to one attempt.
struct Parents {
  std::array<unsigned, kVariablesMax> ids;
  unsigned count = 0;

  LOAM_PURE_IN_TRANSACTIONS void add(unsigned id) noexcept;
  LOAM_PURE_IN_TRANSACTIONS void remove(unsigned id) noexcept;
  std::span<const unsigned> all() const noexcept { return {ids.data(), count}; }
};

enum class Change : std::uint32_t { none, insert, remove, reverse };

// A change of the edge from -> to. While it is in the list of tasks only its score is looked at, by others too.
struct Task {
  Change change = Change::none;
  float score = 0;  // by how much it improves the network's
  std::int32_t from = 0, to = 0;
};

// The highest score first.
struct TaskOrder {
  LOAM_PURE_IN_TRANSACTIONS static int compare(const Task* a, const Task* b) noexcept {
    const float score_a = score(*a), score_b = score(*b);
    if (score_a != score_b) return score_a > score_b ? -1 : 1;
    return a->to - b->to;
  }
  // relaxed: an attempt that has followed a link which is gone may look at a task while its owner fills it again; such an
  // attempt does not commit.
  static float score(const Task& task) noexcept {
    return std::atomic_ref(const_cast<float&>(task.score)).load(std::memory_order_relaxed);
  }
  // `slot`: not in the list. `to` never changes.
  static void fill(Task& slot, const Task& task) noexcept {
    slot.change = task.change;
    slot.from = task.from;
    std::atomic_ref(slot.score).store(task.score, std::memory_order_relaxed);  // relaxed: as above
  }
};
using Tasks = structures::List<Task*, TaskOrder>;

class Network {
 public:
  // setup: a plain access policy, which makes the array of lists.
  template <class Access>
  Network(Access& setup, unsigned variables)
      : variables_(variables), nodes_(static_cast<Node*>(setup.allocate(variables * sizeof(Node)))) {
    for (unsigned i = 0; i < variables; ++i) ::new (nodes_ + i) Node;
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  ~Network();

  template <class Access>
  bool has_edge(Access& access, unsigned from, unsigned to) const {
    return nodes_[to].parents.find(access, std::int64_t{from}) != nullptr;
  }
  template <class Access>
  void insert(Access& access, unsigned from, unsigned to) {
    nodes_[to].parents.insert_if_absent(access, from);
    nodes_[from].children.insert_if_absent(access, to);
  }
  template <class Access>
  void remove(Access& access, unsigned from, unsigned to) {
    nodes_[to].parents.remove(access, std::int64_t{from});
    nodes_[from].children.remove(access, std::int64_t{to});
  }

  template <class Access>
  Parents parents(Access& access, unsigned id) const {
    Parents found;
    nodes_[id].parents.visit(access, [&](std::int64_t parent) {
      found.add(static_cast<unsigned>(parent));
      return true;
    });
    return found;
  }

  // All that can be reached from `from`, itself included, or as many as were found before `to`.
  template <class Access>
  Variables reachable(Access& access, unsigned from, unsigned to = kVariablesMax) const {
    std::array<unsigned, kVariablesMax> queue;
    unsigned queued = 0;
    Variables seen = 0;
    const auto reach = [&](unsigned id) {
      if ((seen >> id & 1) == 0) queue[queued++] = id;
      seen |= Variables{1} << id;
    };
    reach(from);
    for (unsigned i = 0; i < queued && queue[i] != to; ++i)
      nodes_[queue[i]].children.visit(access, [&](std::int64_t child) {
        reach(static_cast<unsigned>(child));
        return true;
      });
    return seen;
  }
  template <class Access>
  bool leads(Access& access, unsigned from, unsigned to) const {
    return (reachable(access, from, to) >> to & 1) != 0;
  }

  // Whether reversing the edge would close a circle. Takes the edge out and puts it back.
  template <class Access>
  bool reverse_closes(Access& access, unsigned from, unsigned to) {
    remove(access, from, to);
    const bool closes = leads(access, from, to);
    insert(access, from, to);
    return closes;
  }

  // Applies a task if it keeps the network what it is. returns whether it did
  template <class Access>
  bool apply(Access& access, const Task& task) {
    const auto from = static_cast<unsigned>(task.from), to = static_cast<unsigned>(task.to);
    switch (task.change) {
      case Change::insert:
        if (has_edge(access, from, to) || leads(access, to, from)) return false;
        insert(access, from, to);
        return true;
      case Change::remove:
        if (!has_edge(access, from, to)) return false;
        remove(access, from, to);
        return true;
      case Change::reverse:
        if (!has_edge(access, from, to) || reverse_closes(access, from, to)) return false;
        remove(access, from, to);
        insert(access, to, from);
        return true;
      case Change::none:
        return false;
    }
    return false;
  }

  struct Findings {
    std::string_view broken;  // N1 or N2, empty if both hold
    std::int64_t edges = 0;
  };
  // Plainly; no other thread may be inside.
  Findings verify() const;

 private:
  struct Node {
    Ids parents, children;
  };

  const unsigned variables_;
  Node* const nodes_;
};

}  // namespace loam::workloads::bayes
