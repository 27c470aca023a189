#include "workloads/applications/shared/bayes_data.hpp"

#include "workloads/applications/shared/mersenne_twister.hpp"

#include <algorithm>
#include <deque>

namespace loam::workloads::bayes {
namespace {

constexpr std::uint64_t kPercent = 100;  // and the steps of a value's chance to be 1

class Generator {
 public:
  explicit Generator(const DataSettings& settings)
      : settings_(settings), random_(settings.seed), parents_(settings.variables), children_(settings.variables) {}

  Data make() {
    draw_network();
    draw_chances();
    const auto order = order_of_drawing();
    Data data{parents_, {}};
    data.records.reserve(settings_.records);
    for (unsigned i = 0; i < settings_.records; ++i) data.records.push_back(draw_record(order));
    return data;
  }

 private:
  void draw_network() {
    for (unsigned node = 0; node < settings_.variables; ++node)
      for (unsigned i = 0; i < settings_.parents_max; ++i) {
        if (random_.below(kPercent) >= settings_.parent_percent) continue;
        const auto parent = static_cast<unsigned>(random_.below(settings_.variables));
        auto& parents = parents_[node];
        const auto place = std::lower_bound(parents.begin(), parents.end(), parent);
        const bool known = place != parents.end() && *place == parent;
        if (parent == node || known || leads(node, parent)) continue;
        parents.insert(place, parent);
        children_[parent].push_back(node);
      }
  }

  bool leads(unsigned from, unsigned to) const {
    Variables seen = 0;
    std::deque<unsigned> queue{from};
    for (; !queue.empty(); queue.pop_front()) {
      const unsigned node = queue.front();
      if (node == to) return true;
      if ((seen >> node & 1) != 0) continue;
      seen |= Variables{1} << node;
      queue.insert(queue.end(), children_[node].begin(), children_[node].end());
    }
    return false;
  }

  void draw_chances() {
    chances_.resize(settings_.variables);
    for (unsigned node = 0; node < settings_.variables; ++node) {
      chances_[node].resize(std::size_t{1} << parents_[node].size());
      for (auto& chance : chances_[node]) chance = random_.below(kPercent + 1);
    }
  }

  // From each leaf all that is above it, level by level, in reverse: a node's place is that of its last level, so it
  // comes after all its parents. Of a level each node's last place counts, as if it were there once for each way to it.
  std::vector<unsigned> order_of_drawing() const {
    std::vector<unsigned> order;
    Variables ordered = 0;
    for (unsigned leaf = 0; leaf < settings_.variables; ++leaf) {
      if (!children_[leaf].empty()) continue;
      std::vector<unsigned> above, level{leaf};
      for (; !level.empty(); level = parents_of(level)) above.insert(above.end(), level.begin(), level.end());
      for (auto node = above.rbegin(); node != above.rend(); ++node) {
        if ((ordered >> *node & 1) != 0) continue;
        ordered |= Variables{1} << *node;
        order.push_back(*node);
      }
    }
    return order;
  }

  // Each once, where it is last.
  std::vector<unsigned> parents_of(const std::vector<unsigned>& level) const {
    std::vector<unsigned> reversed;
    Variables seen = 0;
    for (auto node = level.rbegin(); node != level.rend(); ++node)
      for (auto parent = parents_[*node].rbegin(); parent != parents_[*node].rend(); ++parent) {
        if ((seen >> *parent & 1) == 0) reversed.push_back(*parent);
        seen |= Variables{1} << *parent;
      }
    return {reversed.rbegin(), reversed.rend()};
  }

  Variables draw_record(const std::vector<unsigned>& order) {
    Variables record = 0;
    for (const unsigned node : order) {
      std::size_t row = 0;
      for (const unsigned parent : parents_[node]) row = row * 2 + (record >> parent & 1);
      if (random_.below(kPercent) < chances_[node][row]) record |= Variables{1} << node;
    }
    return record;
  }

  const DataSettings& settings_;
  applications::MersenneTwister random_;
  std::vector<std::vector<unsigned>> parents_, children_;
  std::vector<std::vector<std::uint64_t>> chances_;
};

}  // namespace

Data make_data(const DataSettings& settings) { return Generator(settings).make(); }

}  // namespace loam::workloads::bayes
