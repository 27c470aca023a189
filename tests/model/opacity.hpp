// opacity: is there one order of all attempts, aborted ones included as readers, that respects real time and in which
// every read returns the last committed value?
//   Source  the graph of Guerraoui and Kapalka, "Principles of Transactional Memory", 2010: opaque iff the graph of
//           real time, reads-from, version order and reader-before-next-writer has no cycle, for some version order.
//   Writes that follow a read of the same variable force the version order. With blind writes all orders of the
//   committed writers that reads and real time allow are tried: at most kBlindWritersMax of them.
//   Cost    O(attempts^2) edges; a few microseconds for ten attempts.
#pragma once

#include "tests/model/history.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace loam::tests {

class OpacityChecker {
 public:
  static constexpr std::size_t kBlindWritersMax = 8;

  explicit OpacityChecker(const History& history) : history_(history) {}

  // Nothing if the history is opaque, else what is wrong with it.
  std::optional<std::string> violation() {
    if (!collect_writes() || !collect_reads()) return wrong_;
    if (blind_) {
      if (writers_.size() > kBlindWritersMax) return std::nullopt;  // the generator keeps below it
      if (some_order_works()) return std::nullopt;
      return "no order of the committed writers explains the reads";
    }
    Order order;
    if (!forced_order(order)) return wrong_;
    if (acyclic(order)) return std::nullopt;
    return wrong_;
  }

 private:
  static constexpr std::size_t kInitial = ~std::size_t{0};  // the writer of every initial value

  struct Source {  // an external read
    unsigned variable;
    std::size_t writer;
  };
  using Order = std::map<unsigned, std::vector<std::size_t>>;  // committed writers of a variable, oldest first

  bool fail(std::string what) {
    wrong_ = std::move(what);
    return false;
  }
  static std::string name(std::size_t attempt) { return "#" + std::to_string(attempt); }

  bool collect_writes() {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      std::map<unsigned, std::uint64_t> last;
      for (const Event& event : history_[i].events) {
        if (event.kind != EventKind::write) continue;
        if (!writer_of_.emplace(event.value, std::pair{i, event.variable}).second)
          return fail("H1: value " + std::to_string(event.value) + " was written twice");
        last[event.variable] = event.value;
      }
      if (history_[i].committed && !last.empty()) writers_.push_back(i);
      for (const auto& [variable, value] : last) final_[{i, variable}] = value;
    }
    return true;
  }

  bool collect_reads() {
    sources_.resize(history_.size());
    for (std::size_t i = 0; i < history_.size(); ++i) {
      std::map<unsigned, std::uint64_t> own;
      std::map<unsigned, bool> read_before;
      for (const Event& event : history_[i].events) {
        if (event.kind == EventKind::write) {
          if (history_[i].committed && !own.contains(event.variable) && !read_before[event.variable]) blind_ = true;
          own[event.variable] = event.value;
          continue;
        }
        if (const auto mine = own.find(event.variable); mine != own.end()) {
          if (mine->second != event.value)
            return fail(name(i) + " did not read back its own write of variable " + std::to_string(event.variable));
          continue;
        }
        read_before[event.variable] = true;
        if (!add_source(i, event)) return false;
      }
    }
    return true;
  }

  bool add_source(std::size_t reader, const Event& event) {
    if (event.value == 0) {
      sources_[reader].push_back({event.variable, kInitial});
      return true;
    }
    const std::string what = name(reader) + " read variable " + std::to_string(event.variable) + ": ";
    const auto found = writer_of_.find(event.value);
    if (found == writer_of_.end()) return fail(what + "a value that nobody wrote");
    const auto [writer, variable] = found->second;
    if (variable != event.variable) return fail(what + "a value of another variable");
    if (writer == reader) return fail(what + "its own value of before the write");
    if (!history_[writer].committed) return fail(what + "from " + name(writer) + ", which did not commit");
    if (final_[{writer, variable}] != event.value) return fail(what + "an intermediate value of " + name(writer));
    sources_[reader].push_back({variable, writer});
    return true;
  }

  // Each writer has read the version that it replaces: the versions form a chain.
  bool forced_order(Order& order) {
    std::map<unsigned, std::map<std::size_t, std::size_t>> next;  // per variable: version -> the one that replaced it
    std::map<unsigned, std::size_t> count;
    for (const std::size_t writer : writers_)
      for (const Source& source : sources_[writer]) {
        if (!final_.contains({writer, source.variable})) continue;
        const auto [known, is_new] = next[source.variable].emplace(source.writer, writer);
        if (is_new)
          ++count[source.variable];
        else if (known->second != writer)
          return fail("lost update: " + name(writer) + " and " + name(known->second) +
                      " replaced one version of variable " + std::to_string(source.variable));
      }
    for (const auto& [variable, links] : next) {
      auto& chain = order[variable];
      for (auto at = links.find(kInitial); at != links.end() && chain.size() <= links.size();
           at = links.find(at->second))
        chain.push_back(at->second);
      if (chain.size() != count[variable])
        return fail("versions of variable " + std::to_string(variable) + " do not form a chain");
    }
    return true;
  }

  bool acyclic(const Order& order) {
    const std::size_t n = history_.size();
    edges_.assign(n, std::vector<const char*>(n, nullptr));
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        if (a != b && (history_[a].end < history_[b].begin ||
                       (history_[a].thread == history_[b].thread && history_[a].begin < history_[b].begin)))
          edges_[a][b] = "real time";
    for (const auto& [variable, chain] : order)
      for (std::size_t i = 1; i < chain.size(); ++i) edges_[chain[i - 1]][chain[i]] = "version order";
    for (std::size_t reader = 0; reader < n; ++reader)
      for (const Source& source : sources_[reader]) {
        if (source.writer != kInitial) edges_[source.writer][reader] = "read from";
        const auto chain = order.find(source.variable);
        if (chain == order.end()) continue;
        std::size_t next = 0;
        if (source.writer != kInitial)
          while (chain->second[next++] != source.writer) {
          }
        if (next < chain->second.size() && chain->second[next] != reader)
          edges_[reader][chain->second[next]] = "read before";
      }
    state_.assign(n, 0);
    path_.clear();
    for (std::size_t start = 0; start < n; ++start)
      if (state_[start] == 0 && reaches_itself(start)) return false;
    return true;
  }

  bool reaches_itself(std::size_t at) {
    state_[at] = 1;
    path_.push_back(at);
    for (std::size_t to = 0; to < history_.size(); ++to) {
      if (edges_[at][to] == nullptr || state_[to] == 2) continue;
      if (state_[to] == 1) {
        wrong_ = "cycle:";
        std::size_t i = 0;
        while (path_[i] != to) ++i;
        for (; i + 1 < path_.size(); ++i) wrong_ += " " + name(path_[i]) + " -" + edges_[path_[i]][path_[i + 1]] + "->";
        wrong_ += " " + name(at) + " -" + edges_[at][to] + "-> " + name(to);
        return true;
      }
      if (reaches_itself(to)) return true;
    }
    path_.pop_back();
    state_[at] = 2;
    return false;
  }

  bool some_order_works() {
    std::map<unsigned, std::size_t> newest;
    std::vector<std::size_t> placed;
    return place(placed, newest);
  }

  // Appends each writer that may come next: all before it in real time are placed, and it read the newest versions.
  bool place(std::vector<std::size_t>& placed, std::map<unsigned, std::size_t>& newest) {
    if (placed.size() == writers_.size()) {
      Order order;
      for (const std::size_t writer : placed)
        for (const auto& [key, value] : final_)
          if (key.first == writer) order[key.second].push_back(writer);
      return acyclic(order);
    }
    for (const std::size_t writer : writers_) {
      if (std::find(placed.begin(), placed.end(), writer) != placed.end() || !may_follow(writer, placed, newest))
        continue;
      auto then = newest;
      for (const auto& [key, value] : final_)
        if (key.first == writer) then[key.second] = writer;
      placed.push_back(writer);
      if (place(placed, then)) return true;
      placed.pop_back();
    }
    return false;
  }

  bool may_follow(std::size_t writer, const std::vector<std::size_t>& placed,
                  const std::map<unsigned, std::size_t>& newest) const {
    for (const std::size_t other : writers_)
      if (other != writer && history_[other].end < history_[writer].begin &&
          std::find(placed.begin(), placed.end(), other) == placed.end())
        return false;
    for (const Source& source : sources_[writer]) {
      const auto now = newest.find(source.variable);
      if ((now == newest.end() ? kInitial : now->second) != source.writer) return false;
    }
    return true;
  }

  const History& history_;
  std::map<std::uint64_t, std::pair<std::size_t, unsigned>> writer_of_;  // value -> attempt, variable
  std::map<std::pair<std::size_t, unsigned>, std::uint64_t> final_;      // attempt, variable -> last value written
  std::vector<std::size_t> writers_;                                     // committed
  std::vector<std::vector<Source>> sources_;                             // external reads per attempt
  std::vector<std::vector<const char*>> edges_;                          // why a comes before b, or nullptr
  std::vector<char> state_;                                              // 0 new, 1 on the path, 2 done
  std::vector<std::size_t> path_;
  bool blind_ = false;
  std::string wrong_;
};

inline std::optional<std::string> opacity_violation(const History& history) {
  return OpacityChecker(history).violation();
}

}  // namespace loam::tests
