// The twelve long traversals of STMBench7.
#pragma once

#include "workloads/managed/bench7/walks.hpp"

namespace loam::workloads::managed::bench7 {

enum class Change { none, places, dates };

// T1, T2a to T3c. of_root: only of the first part of each walk; times: how often each of them changes
template <Change kChange, bool kOfRoot, unsigned kTimes, class Access>
Outcome walk_parts(Context<Access>& c) {
  std::int64_t visited = 0;
  for_each_component(c, [&](const gc::Local<CompositePart>& whole) {
    bool changes = kChange != Change::none;
    visited += for_each_part(c, whole, [&](const gc::Local<AtomicPart>& part) {
      c.tx.enlist_read(part);
      if (!changes) return;
      for (unsigned i = 0; i < kTimes; ++i)
        if constexpr (kChange == Change::places)
          exchange_places(c, part);
        else
          toggle_indexed_date(c, part);
      changes = !kOfRoot;
    });
  });
  return {visited};
}

template <class Access>
Outcome t1(Context<Access>& c) {
  return walk_parts<Change::none, false, 0>(c);
}
template <class Access>
Outcome t2a(Context<Access>& c) {
  return walk_parts<Change::places, true, 1>(c);
}
template <class Access>
Outcome t2b(Context<Access>& c) {
  return walk_parts<Change::places, false, 1>(c);
}
template <class Access>
Outcome t2c(Context<Access>& c) {
  return walk_parts<Change::places, false, 4>(c);
}
template <class Access>
Outcome t3a(Context<Access>& c) {
  return walk_parts<Change::dates, true, 1>(c);
}
template <class Access>
Outcome t3b(Context<Access>& c) {
  return walk_parts<Change::dates, false, 1>(c);
}
template <class Access>
Outcome t3c(Context<Access>& c) {
  return walk_parts<Change::dates, false, 4>(c);
}

// T4: counts a letter in the documents of all components.
template <class Access>
Outcome t4(Context<Access>& c) {
  std::int64_t count = 0;
  for_each_component(c, [&](const gc::Local<CompositePart>& whole) { count += count_in_document(c, whole); });
  return {count};
}

// T5: changes them.
template <class Access>
Outcome t5(Context<Access>& c) {
  std::int64_t count = 0;
  for_each_component(c, [&](const gc::Local<CompositePart>& whole) { count += change_document(c, whole); });
  return {count};
}

// T6: looks at the root part of all components.
template <class Access>
Outcome t6(Context<Access>& c) {
  std::int64_t count = 0;
  for_each_component(c, [&](const gc::Local<CompositePart>& whole) {
    const gc::Local<AtomicPart> root(c.mutator(), c.tx.read(whole, &CompositePart::root));
    c.tx.enlist_read(root);
    ++count;
  });
  return {count};
}

template <class Access>
std::int64_t count_newer(const Context<Access>& c, const gc::Local<Assembly>& assembly) {
  if (c.tx.read(assembly, &Assembly::level) == 1) return has_newer_component(c, assembly) ? 1 : 0;
  std::int64_t count = 0;
  const gc::Local<List> children(c.mutator(), c.tx.read(assembly, &Assembly::children));
  for_each_item<Assembly>(c.tx, children, [&](const gc::Local<Assembly>& child) { count += count_newer(c, child); });
  if (count != 0) c.tx.enlist_read(assembly);
  return count != 0 ? count + 1 : 0;
}

// Q6: assemblies that have a component which is newer than the base assembly that uses it.
template <class Access>
Outcome q6(Context<Access>& c) {
  const gc::Local<Assembly> root(c.mutator(), c.tx.read(c.roots.module, &Module::root));
  return {count_newer(c, root)};
}

// Q7: looks at all atomic parts.
template <class Access>
Outcome q7(Context<Access>& c) {
  std::int64_t count = 0;
  map_for_each<AtomicPart>(c.tx, c.roots.atomic_by_id, [&](const gc::Local<AtomicPart>& part) {
    c.tx.enlist_read(part);
    ++count;
  });
  return {count};
}

}  // namespace loam::workloads::managed::bench7
