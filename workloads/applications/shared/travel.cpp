#include "workloads/applications/shared/travel.hpp"

#include "runtime/base/check.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace loam::workloads::applications::travel {
namespace {

// Digests numbers in the order in which they come (FNV-1a, by words).
class Digest {
 public:
  void add(std::int64_t number) noexcept { value_ = (value_ ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u; }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace

Manager::~Manager() {
  customers_.for_each([](std::int64_t, Customer* customer) {
    customer->reservations->for_each([](Reservation* reservation) { std::free(reservation); });
    customer->reservations->free_nodes();
    std::free(customer->reservations);
    std::free(customer);
  });
  for (const auto& items : items_) items.for_each([](std::int64_t, Item* item) { std::free(item); });
}

void Manager::broken(std::int64_t used, std::int64_t free, std::int64_t total) {
  LOAM_FATAL("V1: used + free = total, and none is below 0: used={} free={} total={}", used, free, total);
}

void Manager::not_there(std::int64_t id) {
  LOAM_FATAL("V3: every reservation is of an item that is there, and a customer stays: number {}", id);
}

Manager::Found Manager::verify(std::int64_t rows) const {
  Found found;
  Digest digest;
  std::vector<std::int64_t> counted[kTables];
  for (auto& counts : counted) counts.assign(static_cast<std::size_t>(rows) + 1, 0);
  const auto nodes_of = [&](const auto& tree) {
    const auto verdict = tree.verify();
    if (!verdict.holds()) found.broken = verdict.broken;
    return static_cast<std::int64_t>(verdict.elements);
  };

  found.blocks += 3 * nodes_of(customers_);  // the node, the customer, its list
  customers_.for_each([&](std::int64_t id, const Customer* customer) {
    if (id != customer->id || id < 1 || id > rows) found.broken = "V4: customers have numbers from 1 to the rows";
    digest.add(id);
    const auto verdict = customer->reservations->verify();
    if (!verdict.holds()) found.broken = verdict.broken;
    found.blocks += 2 * static_cast<std::int64_t>(verdict.elements);
    customer->reservations->for_each([&](const Reservation* reservation) {
      digest.add(reservation->id);
      digest.add(reservation->price);
      ++found.reserved;
      if (reservation->id >= 1 && reservation->id <= rows)
        ++counted[static_cast<std::size_t>(reservation->table)][static_cast<std::size_t>(reservation->id)];
      else
        found.broken = "V3: every reservation is of an item that is there";
    });
  });

  for (std::size_t table = 0; table < kTables; ++table) {
    found.blocks += 2 * nodes_of(items_[table]);
    items_[table].for_each([&](std::int64_t id, const Item* item) {
      for (const std::int64_t number : {id, item->used, item->free, item->total, item->price}) digest.add(number);
      if (std::min({item->used, item->free, item->total}) < 0 || item->used + item->free != item->total)
        found.broken = "V1: used + free = total, and none is below 0";
      if (item->used != std::exchange(counted[table][static_cast<std::size_t>(id)], 0))
        found.broken = "V2: used is the number of reservations of the item";
    });
    if (std::ranges::any_of(counted[table], [](std::int64_t count) { return count != 0; }))
      found.broken = "V3: every reservation is of an item that is there";
  }
  found.digest = digest.value();
  return found;
}

}  // namespace loam::workloads::applications::travel
