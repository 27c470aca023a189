// Lists: arrays that grow by half, from 10. What is removed leaves no hole: what follows moves down, as in a library's
// array list.
#pragma once

#include "workloads/managed/bench7/objects.hpp"

#include <cstdint>

namespace loam::workloads::managed::bench7 {

inline constexpr std::size_t kListLeast = 10;

template <class Access>
List* make_list(Access& tx) {
  gc::Local<Items> items(tx.mutator(), tx.template create_array<Items>(kListLeast));
  auto* const list = tx.template create<List>();
  list->items.init(items.get());
  list->count.init(0);
  return list;
}

template <class Access>
std::size_t list_size(Access& tx, const gc::Local<List>& list) {
  return static_cast<std::size_t>(tx.read(list, &List::count));
}

template <class T, class Access>
T* list_at(Access& tx, const gc::Local<List>& list, std::size_t index) {
  const gc::Local<Items> items(tx.mutator(), tx.read(list, &List::items));
  return static_cast<T*>(tx.read_at(items, index));
}

// Calls visit(const Local<T>&) for each item. The list must not change meanwhile.
template <class T, class Access, class Visit>
void for_each_item(Access& tx, const gc::Local<List>& list, Visit&& visit) {
  const std::size_t count = list_size(tx, list);
  const gc::Local<Items> items(tx.mutator(), tx.read(list, &List::items));
  gc::Local<T> item(tx.mutator());
  for (std::size_t i = 0; i < count; ++i) {
    item = static_cast<T*>(tx.read_at(items, i));
    visit(item);
  }
}

template <class Access>
void list_add(Access& tx, const gc::Local<List>& list, const gc::LocalBase& value) {
  const std::size_t count = list_size(tx, list);
  gc::Local<gc::Object> added(tx.mutator(), value.object());
  gc::Local<Items> items(tx.mutator(), tx.read(list, &List::items));
  if (count == items->length()) {
    gc::Local<Items> larger(tx.mutator(), tx.template create_array<Items>(count + count / 2));
    gc::Local<gc::Object> item(tx.mutator());
    for (std::size_t i = 0; i < count; ++i) {
      item = tx.read_at(items, i);
      tx.write_at(larger, i, item);
    }
    tx.write(list, &List::items, larger);
    items = larger;
  }
  tx.write_at(items, count, added);
  tx.write(list, &List::count, count + 1);
}

// returns the index of the first of them; the size if there is none
template <class Access>
std::size_t list_find(Access& tx, const gc::Local<List>& list, const gc::LocalBase& value) {
  const std::size_t count = list_size(tx, list);
  const gc::Local<Items> items(tx.mutator(), tx.read(list, &List::items));
  for (std::size_t i = 0; i < count; ++i) {
    const gc::Object* const item = tx.read_at(items, i);  // first: what it reads may collect, and then the value moves
    if (item == value.object()) return i;
  }
  return count;
}

// Removes the first of them. returns whether there was one
template <class Access>
bool list_remove(Access& tx, const gc::Local<List>& list, const gc::LocalBase& value) {
  const std::size_t count = list_size(tx, list), found = list_find(tx, list, value);
  if (found == count) return false;
  const gc::Local<Items> items(tx.mutator(), tx.read(list, &List::items));
  gc::Local<gc::Object> item(tx.mutator());
  for (std::size_t i = found + 1; i < count; ++i) {
    item = tx.read_at(items, i);
    tx.write_at(items, i - 1, item);
  }
  tx.write_at(items, count - 1, nullptr);
  tx.write(list, &List::count, count - 1);
  return true;
}

}  // namespace loam::workloads::managed::bench7
