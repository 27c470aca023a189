// The database of vacation: what is offered, who reserved it, and the operations that its transactions are made of.
//   V1 of every item: used + free = total, and none is below 0.   V2 used is the number of reservations of the item.
//   V3 every reservation is of an item that is there.   V4 customers have numbers from 1 to the number of rows.
//   Changes are functions of their own, which take the access policy by value so that it stays in registers.
//   Each change of an item checks V1: with consistent reads it cannot be broken.
#pragma once

#include "structures/list.hpp"
#include "structures/plain_access.hpp"
#include "structures/red_black_tree.hpp"
#include "workloads/applications/shared/mersenne_twister.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace loam::workloads::applications::travel {

enum class Table : std::size_t { car, flight, room };
inline constexpr std::size_t kTables = 3;
inline constexpr std::int64_t kStep = 100;  // seats of an item come and go by the hundred

inline std::int64_t draw_price(MersenneTwister& random) noexcept {
  return static_cast<std::int64_t>(random.below(5) * 10 + 50);
}

struct Item {
  std::int64_t id, used, free, total, price;
};

struct Reservation {
  Table table;
  std::int64_t id, price;
};

struct ByItem {
  static int compare(const Reservation* a, const Reservation* b) noexcept {
    const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
    return a->table != b->table ? order(a->table, b->table) : order(a->id, b->id);
  }
};

using Reservations = structures::List<Reservation*, ByItem>;

struct Customer {
  std::int64_t id;
  Reservations* reservations;
};

class Manager {
  using Items = structures::RedBlackMap<std::int64_t, Item*>;
  using Customers = structures::RedBlackMap<std::int64_t, Customer*>;

 public:
  Manager() = default;
  ~Manager();

  // Rows 1 to `rows` of each table, each time in another order.
  template <class Access>
  void fill(Access& access, std::uint64_t rows) {
    MersenneTwister random(0);
    std::vector<std::int64_t> ids(rows);
    for (std::uint64_t i = 0; i < rows; ++i) ids[i] = static_cast<std::int64_t>(i + 1);
    for (std::size_t table = 0; table <= kTables; ++table) {
      for (std::uint64_t i = 0; i < rows; ++i) {
        const std::uint64_t a = random.below(rows), b = random.below(rows);
        std::swap(ids[a], ids[b]);
      }
      for (const std::int64_t id : ids) {
        const auto seats = static_cast<std::int64_t>((random.below(5) + 1) * 100);
        const std::int64_t price = draw_price(random);
        if (table < kTables)
          add(access, static_cast<Table>(table), id, seats, price);
        else
          add_customer(access, id);
      }
    }
  }

  // How many are free, and for how much; below 0 where there is no such item.
  template <class Access>
  std::int64_t free_of(Access& access, Table table, std::int64_t id) const {
    const Item* const item = items(table).get(access, id, nullptr);
    return item == nullptr ? -1 : access.read(item->free);
  }
  template <class Access>
  std::int64_t price_of(Access& access, Table table, std::int64_t id) const {
    const Item* const item = items(table).get(access, id, nullptr);
    return item == nullptr ? -1 : access.read(item->price);
  }

  // More of an item, at a new price; a new item where there is none.
  template <class Access>
  [[gnu::noinline]] void add(Access access, Table table, std::int64_t id, std::int64_t seats, std::int64_t price) {
    Item* const item = items(table).get(access, id, nullptr);
    if (item == nullptr) {
      items(table).insert(access, id, access.template create<Item>(id, std::int64_t{0}, seats, seats, price));
      return;
    }
    change_total(access, *item, seats);
    access.write(item->price, price);
    check(access, *item);
  }

  // Fewer of an item, if so many are free. What has no seats left goes away.
  template <class Access>
  [[gnu::noinline]] void remove(Access access, Table table, std::int64_t id, std::int64_t seats) {
    Item* const item = items(table).get(access, id, nullptr);
    if (item == nullptr || access.read(item->free) < seats) return;
    change_total(access, *item, -seats);
    if (access.read(item->total) != 0) return;
    items(table).remove(access, id);
    access.destroy(item);
  }

  // A whole flight, if nobody has reserved it.
  template <class Access>
  [[gnu::noinline]] void remove_flight(Access access, std::int64_t id) {
    const Item* const item = items(Table::flight).get(access, id, nullptr);
    if (item == nullptr || access.read(item->used) > 0) return;
    remove(access, Table::flight, id, access.read(item->total));
  }

  // Nothing where there is one with this number.
  template <class Access>
  void add_customer(Access& access, std::int64_t id) {
    if (customers_.contains(access, id)) return;
    auto* const reservations = access.template create<Reservations>();
    customers_.insert(access, id, access.template create<Customer>(id, reservations));
  }

  // False, and nothing is written, if the item or the customer is not there, nothing is free, or the customer has it.
  template <class Access>
  [[gnu::noinline]] bool reserve(Access access, Table table, std::int64_t customer_id, std::int64_t id) {
    const Customer* const customer = customers_.get(access, customer_id, nullptr);
    if (customer == nullptr) return false;
    Item* const item = items(table).get(access, id, nullptr);
    if (item == nullptr || access.read(item->free) < 1) return false;
    change_used(access, *item, 1);
    auto* const made = access.template create<Reservation>(table, id, access.read(item->price));
    if (customer->reservations->insert_if_absent(access, made)) return true;
    change_used(access, *item, -1);
    access.destroy(made);
    return false;
  }

  // Gives back all that the customer has reserved. returns the bill, below 0 where there is no such customer
  template <class Access>
  [[gnu::noinline]] std::int64_t delete_customer(Access access, std::int64_t id) {
    const std::int64_t bill = bill_of(access, id);
    if (bill < 0) return bill;
    Customer* const customer = customers_.get(access, id, nullptr);
    if (customer == nullptr) [[unlikely]]
      not_there(id);
    customer->reservations->visit(access, [&](Reservation* reservation) {
      Item* const item = items(reservation->table).get(access, reservation->id, nullptr);
      if (item == nullptr) [[unlikely]]
        not_there(reservation->id);
      change_used(access, *item, -1);
      access.destroy(reservation);
      return true;
    });
    customers_.remove(access, id);
    customer->reservations->destroy_nodes(access);
    access.destroy(customer->reservations);
    access.destroy(customer);
    return bill;
  }

  struct Found {
    std::string_view broken = "";
    std::int64_t blocks = 0;  // all that can be reached from the tables
    std::uint64_t reserved = 0, digest = 0;
  };
  // Everything, plainly; nobody else may be inside.
  Found verify(std::int64_t rows) const;

  template <class Visit>  // visit(address, bytes) for the blocks that are no nodes
  void for_each_fixed_block(Visit&& visit) const {
    for (const auto& items : items_) items.for_each_fixed_block(visit);
    customers_.for_each_fixed_block(visit);
  }

 private:
  Items& items(Table table) noexcept { return items_[static_cast<std::size_t>(table)]; }
  const Items& items(Table table) const noexcept { return items_[static_cast<std::size_t>(table)]; }

  template <class Access>
  std::int64_t bill_of(Access& access, std::int64_t id) const {
    const Customer* const customer = customers_.get(access, id, nullptr);
    if (customer == nullptr) return -1;
    std::int64_t bill = 0;
    customer->reservations->visit(access, [&bill](const Reservation* reservation) {
      bill += reservation->price;
      return true;
    });
    return bill;
  }

  template <class Access>
  static void change_used(Access& access, Item& item, std::int64_t by) {
    access.write(item.used, access.read(item.used) + by);
    access.write(item.free, access.read(item.free) - by);
    check(access, item);
  }

  template <class Access>
  static void change_total(Access& access, Item& item, std::int64_t by) {
    access.write(item.free, access.read(item.free) + by);
    access.write(item.total, access.read(item.total) + by);
    check(access, item);
  }

  // V1
  template <class Access>
  static void check(Access& access, const Item& item) {
    const std::int64_t used = access.read(item.used), free = access.read(item.free), total = access.read(item.total);
    const std::int64_t price = access.read(item.price);
    if (used < 0 || free < 0 || total < 0 || used + free != total || price < 0) [[unlikely]]
      broken(used, free, total);
  }
  LOAM_PURE_IN_TRANSACTIONS [[noreturn]] static void broken(std::int64_t used, std::int64_t free, std::int64_t total);

  // V3, or a customer that was there a moment ago.
  LOAM_PURE_IN_TRANSACTIONS [[noreturn]] static void not_there(std::int64_t id);

  Items items_[kTables];
  Customers customers_;
};

}  // namespace loam::workloads::applications::travel
