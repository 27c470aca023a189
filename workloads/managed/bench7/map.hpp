// Maps: ordered by a number, as treaps. A node's priority is a hash of its key, so the shape follows from the keys alone
// and an operation writes only the nodes whose children change.
//   Source  Seidel, Aragon, "Randomized search trees", Algorithmica 1996.   Cost  O(log n) expected; 2 ln n nodes deep.
#pragma once

#include "runtime/base/bits.hpp"
#include "workloads/managed/bench7/objects.hpp"

#include <cstdint>

namespace loam::workloads::managed::bench7 {

template <class Access>
Map* make_map(Access& tx) {
  auto* const map = tx.template create<Map>();
  map->root.init(nullptr);
  return map;
}

template <class T, class Access>
T* map_find(Access& tx, const gc::Local<Map>& map, std::uint64_t key) {
  gc::Local<MapNode> node(tx.mutator(), tx.read(map, &Map::root));
  while (node) {
    const std::uint64_t at = tx.read(node, &MapNode::key);
    if (at == key) return static_cast<T*>(tx.read(node, &MapNode::value));
    node = tx.read(node, key < at ? &MapNode::left : &MapNode::right);
  }
  return nullptr;
}

// Puts what is less than the key to the left, what is more to the right.
template <class Access>
void map_split(Access& tx, const gc::Local<MapNode>& node, std::uint64_t key, gc::Local<MapNode>& left,
               gc::Local<MapNode>& right) {
  if (!node) {
    left = nullptr;
    right = nullptr;
    return;
  }
  gc::Local<MapNode> less(tx.mutator()), more(tx.mutator());
  const bool is_less = tx.read(node, &MapNode::key) < key;
  const auto side = is_less ? &MapNode::right : &MapNode::left;
  gc::Local<MapNode> child(tx.mutator(), tx.read(node, side));
  map_split(tx, child, key, less, more);
  const gc::Local<MapNode>& stays = is_less ? less : more;
  if (stays.get() != child.get()) tx.write(node, side, stays);
  left = is_less ? node : less;
  right = is_less ? more : node;
}

// All of `left` is less than all of `right`. returns the root of both
template <class Access>
MapNode* map_join(Access& tx, const gc::Local<MapNode>& left, const gc::Local<MapNode>& right) {
  if (!left) return right.get();
  if (!right) return left.get();
  const bool is_left = base::mix(tx.read(left, &MapNode::key)) > base::mix(tx.read(right, &MapNode::key));
  const gc::Local<MapNode>& top = is_left ? left : right;
  const auto side = is_left ? &MapNode::right : &MapNode::left;
  const gc::Local<MapNode> child(tx.mutator(), tx.read(top, side));
  gc::Local<MapNode> joined(tx.mutator());
  joined = is_left ? map_join(tx, child, right) : map_join(tx, left, child);
  if (joined.get() != child.get()) tx.write(top, side, joined);
  return top.get();
}

// The key must not be there. returns the root
template <class Access>
MapNode* map_insert_below(Access& tx, const gc::Local<MapNode>& node, std::uint64_t key, const gc::LocalBase& value) {
  const std::uint64_t at = node ? tx.read(node, &MapNode::key) : 0;
  if (!node || base::mix(key) > base::mix(at)) {
    gc::Local<MapNode> left(tx.mutator()), right(tx.mutator());
    map_split(tx, node, key, left, right);
    auto* const added = tx.template create<MapNode>();
    added->left.init(left.get());
    added->right.init(right.get());
    added->value.init(value.object());
    added->key.init(key);
    return added;
  }
  const auto side = key < at ? &MapNode::left : &MapNode::right;
  const gc::Local<MapNode> child(tx.mutator(), tx.read(node, side));
  gc::Local<MapNode> now(tx.mutator());
  now = map_insert_below(tx, child, key, value);
  if (now.get() != child.get()) tx.write(node, side, now);
  return node.get();
}

template <class Access>
void map_insert(Access& tx, const gc::Local<Map>& map, std::uint64_t key, const gc::LocalBase& value) {
  const gc::Local<MapNode> root(tx.mutator(), tx.read(map, &Map::root));
  gc::Local<MapNode> now(tx.mutator());
  now = map_insert_below(tx, root, key, value);
  if (now.get() != root.get()) tx.write(map, &Map::root, now);
}

// returns whether it was there
template <class Access>
bool map_remove(Access& tx, const gc::Local<Map>& map, std::uint64_t key) {
  gc::Local<MapNode> above(tx.mutator()), node(tx.mutator(), tx.read(map, &Map::root));
  bool is_left = false;
  while (node) {
    const std::uint64_t at = tx.read(node, &MapNode::key);
    if (at == key) break;
    above = node;
    is_left = key < at;
    node = tx.read(node, is_left ? &MapNode::left : &MapNode::right);
  }
  if (!node) return false;
  const gc::Local<MapNode> left(tx.mutator(), tx.read(node, &MapNode::left)),
      right(tx.mutator(), tx.read(node, &MapNode::right));
  gc::Local<MapNode> joined(tx.mutator());
  joined = map_join(tx, left, right);
  if (above)
    tx.write(above, is_left ? &MapNode::left : &MapNode::right, joined);
  else
    tx.write(map, &Map::root, joined);
  return true;
}

// Calls visit(key, const Local<T>&) in order for keys in [from, until), until it returns false. returns whether it did not
template <class T, class Access, class Visit>
bool map_walk_below(Access& tx, const gc::Local<MapNode>& node, std::uint64_t from, std::uint64_t until, Visit& visit) {
  if (!node) return true;
  const std::uint64_t at = tx.read(node, &MapNode::key);
  if (at > from) {
    const gc::Local<MapNode> left(tx.mutator(), tx.read(node, &MapNode::left));
    if (!map_walk_below<T>(tx, left, from, until, visit)) return false;
  }
  if (at >= from && at < until) {
    const gc::Local<T> value(tx.mutator(), static_cast<T*>(tx.read(node, &MapNode::value)));
    if (!visit(at, value)) return false;
  }
  if (at >= until) return true;
  const gc::Local<MapNode> right(tx.mutator(), tx.read(node, &MapNode::right));
  return map_walk_below<T>(tx, right, from, until, visit);
}

template <class T, class Access, class Visit>
void map_walk(Access& tx, const gc::Local<Map>& map, std::uint64_t from, std::uint64_t until, Visit&& visit) {
  const gc::Local<MapNode> root(tx.mutator(), tx.read(map, &Map::root));
  map_walk_below<T>(tx, root, from, until, visit);
}

template <class T, class Access, class Visit>
void map_for_each(Access& tx, const gc::Local<Map>& map, Visit&& visit) {
  map_walk<T>(tx, map, 0, ~std::uint64_t{0}, [&](std::uint64_t, const gc::Local<T>& value) {
    visit(value);
    return true;
  });
}

// The value with `index` smaller keys; null if there are fewer.
template <class T, class Access>
T* map_nth(Access& tx, const gc::Local<Map>& map, std::size_t index) {
  gc::Local<T> found(tx.mutator());
  map_walk<T>(tx, map, 0, ~std::uint64_t{0}, [&](std::uint64_t, const gc::Local<T>& value) {
    if (index-- != 0) return true;
    found = value;
    return false;
  });
  return found.get();
}

}  // namespace loam::workloads::managed::bench7
