// The ten short traversals of STMBench7.
#pragma once

#include "workloads/managed/bench7/walks.hpp"

namespace loam::workloads::managed::bench7 {

inline constexpr unsigned kTitles = 100;  // of ST4

// ST1, ST6: a random atomic part of a random component.
template <bool kChanges, class Access>
Outcome any_part(Context<Access>& c) {
  const gc::Local<CompositePart> whole(c.mutator(), descend(c));
  if (!whole) return kFailed;
  const gc::Local<Map> parts(c.mutator(), c.tx.read(whole, &CompositePart::parts));
  const std::uint32_t chosen = c.random.below(c.settings.sizes.atomic_parts);
  const gc::Local<AtomicPart> part(c.mutator(), map_nth<AtomicPart>(c.tx, parts, chosen));
  const std::int64_t sum = c.tx.read(part, &AtomicPart::x) + c.tx.read(part, &AtomicPart::y);
  if constexpr (kChanges) exchange_places(c, part);
  return {sum};
}
template <class Access>
Outcome st1(Context<Access>& c) {
  return any_part<false>(c);
}
template <class Access>
Outcome st6(Context<Access>& c) {
  return any_part<true>(c);
}

template <class Access>
Outcome st2(Context<Access>& c) {
  const gc::Local<CompositePart> whole(c.mutator(), descend(c));
  return whole ? Outcome{count_in_document(c, whole)} : kFailed;
}
template <class Access>
Outcome st7(Context<Access>& c) {
  const gc::Local<CompositePart> whole(c.mutator(), descend(c));
  return whole ? Outcome{change_document(c, whole)} : kFailed;
}

// ST3, ST8: all assemblies above what uses a random atomic part.
template <bool kChanges, class Access>
Outcome walk_up(Context<Access>& c) {
  const gc::Local<AtomicPart> part(
      c.mutator(), map_find<AtomicPart>(c.tx, c.roots.atomic_by_id, c.any_id(c.settings.sizes.atomics())));
  if (!part) return kFailed;
  const gc::Local<CompositePart> whole(c.mutator(), static_cast<CompositePart*>(c.tx.read(part, &AtomicPart::part)));
  return {for_each_above(c, whole, [&](const gc::Local<Assembly>& assembly) {
    if constexpr (kChanges)
      toggle_date(c, assembly);
    else
      c.tx.enlist_read(assembly);
  })};
}
template <class Access>
Outcome st3(Context<Access>& c) {
  return walk_up<false>(c);
}
template <class Access>
Outcome st8(Context<Access>& c) {
  return walk_up<true>(c);
}

// ST4: who uses the parts of random titles.
template <class Access>
Outcome st4(Context<Access>& c) {
  std::int64_t count = 0;
  gc::Local<Document> document(c.mutator());
  for (unsigned i = 0; i < kTitles; ++i) {
    document = map_find<Document>(c.tx, c.roots.documents, c.any_id(c.settings.sizes.composite_parts));
    if (!document) continue;
    const gc::Local<CompositePart> whole(c.mutator(),
                                         static_cast<CompositePart*>(c.tx.read(document, &Document::part)));
    const gc::Local<List> used_in(c.mutator(), c.tx.read(whole, &CompositePart::used_in));
    for_each_item<Assembly>(c.tx, used_in, [&](const gc::Local<Assembly>& base) {
      c.tx.enlist_read(base);
      ++count;
    });
  }
  return {count};
}

// ST5: base assemblies that are older than one of their components.
template <class Access>
Outcome st5(Context<Access>& c) {
  std::int64_t count = 0;
  map_for_each<Assembly>(c.tx, c.roots.bases,
                         [&](const gc::Local<Assembly>& base) { count += has_newer_component(c, base) ? 1 : 0; });
  return {count};
}

// ST9, ST10: all atomic parts of a random component.
template <bool kChanges, class Access>
Outcome walk_component(Context<Access>& c) {
  const gc::Local<CompositePart> whole(c.mutator(), descend(c));
  if (!whole) return kFailed;
  return {for_each_part(c, whole, [&](const gc::Local<AtomicPart>& part) {
    if constexpr (kChanges)
      exchange_places(c, part);
    else
      c.tx.enlist_read(part);
  })};
}
template <class Access>
Outcome st9(Context<Access>& c) {
  return walk_component<false>(c);
}
template <class Access>
Outcome st10(Context<Access>& c) {
  return walk_component<true>(c);
}

}  // namespace loam::workloads::managed::bench7
