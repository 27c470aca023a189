// The fifteen operations of STMBench7.
#pragma once

#include "workloads/managed/bench7/walks.hpp"

namespace loam::workloads::managed::bench7 {

inline constexpr unsigned kRandomParts = 10;  // of OP1, OP9, OP15

enum class Part { looks, exchanges, redates };

template <Part kWhat, class Access>
void treat(Context<Access>& c, const gc::Local<AtomicPart>& part) {
  if constexpr (kWhat == Part::exchanges)
    exchange_places(c, part);
  else if constexpr (kWhat == Part::redates)
    toggle_indexed_date(c, part);
  else
    c.tx.enlist_read(part);
}

template <Part kWhat, class Access>
Outcome random_parts(Context<Access>& c) {
  std::int64_t count = 0;
  gc::Local<AtomicPart> part(c.mutator());
  for (unsigned i = 0; i < kRandomParts; ++i) {
    part = map_find<AtomicPart>(c.tx, c.roots.atomic_by_id, c.any_id(c.settings.sizes.atomics()));
    if (!part) continue;
    treat<kWhat>(c, part);
    ++count;
  }
  return {count};
}
template <class Access>
Outcome op1(Context<Access>& c) {
  return random_parts<Part::looks>(c);
}
template <class Access>
Outcome op9(Context<Access>& c) {
  return random_parts<Part::exchanges>(c);
}
template <class Access>
Outcome op15(Context<Access>& c) {
  return random_parts<Part::redates>(c);
}

// The newest percents of the atomic parts, without those of the last date.
template <Part kWhat, Number kPercent, class Access>
Outcome new_parts(Context<Access>& c) {
  constexpr Number kFrom = kDateMost - kPercent * (kDateMost - kDateLeast) / 100;
  std::int64_t count = 0;
  const auto visit = [&](std::uint64_t, const gc::Local<Map>& set) {
    map_for_each<AtomicPart>(c.tx, set, [&](const gc::Local<AtomicPart>& part) {
      treat<kWhat>(c, part);
      ++count;
    });
    return true;
  };
  map_walk<Map>(c.tx, c.roots.atomic_by_date, static_cast<std::uint64_t>(kFrom), static_cast<std::uint64_t>(kDateMost),
                visit);
  return {count};
}
template <class Access>
Outcome op2(Context<Access>& c) {
  return new_parts<Part::looks, 1>(c);
}
template <class Access>
Outcome op3(Context<Access>& c) {
  return new_parts<Part::looks, 10>(c);
}
template <class Access>
Outcome op10(Context<Access>& c) {
  return new_parts<Part::exchanges, 1>(c);
}

// ---- the manual

template <class Access>
Manual* the_manual(const Context<Access>& c) {
  return c.tx.read(c.roots.module, &Module::manual);
}

template <class Access>
Outcome op4(Context<Access>& c) {
  const gc::Local<Manual> manual(c.mutator(), the_manual(c));
  const gc::Local<Text> text(c.mutator(), c.tx.read(manual, &Manual::text));
  return {count_char(c, text, kCounted)};
}

// Whether its first character is its last one.
template <class Access>
Outcome op5(Context<Access>& c) {
  const gc::Local<Manual> manual(c.mutator(), the_manual(c));
  const gc::Local<Text> text(c.mutator(), c.tx.read(manual, &Manual::text));
  const char first = char_at(c, text, 0), last = char_at(c, text, text->length() - 1);
  return {first == last ? 1 : 0};
}

template <class Access>
Outcome op11(Context<Access>& c) {
  const gc::Local<Manual> manual(c.mutator(), the_manual(c));
  const gc::Local<Text> text(c.mutator(), c.tx.read(manual, &Manual::text));
  const bool has = char_at(c, text, 0) == kCounted;
  return {exchange_char(c, manual, has ? kCounted : kExchanged, has ? kExchanged : kCounted)};
}

// ---- assemblies

template <bool kChanges, class Access>
void look_or_toggle(const Context<Access>& c, const gc::Local<Assembly>& assembly) {
  if constexpr (kChanges)
    toggle_date(c, assembly);
  else
    c.tx.enlist_read(assembly);
}

// A random assembly and those with the same parent.
template <bool kChanges, class Access>
Outcome siblings(Context<Access>& c, const gc::Local<Map>& index, std::uint32_t objects) {
  const gc::Local<Assembly> assembly(c.mutator(), map_find<Assembly>(c.tx, index, c.any_id(objects)));
  if (!assembly) return kFailed;
  const gc::Local<Assembly> super(c.mutator(), c.tx.read(assembly, &Assembly::super));
  if (!super) {
    look_or_toggle<kChanges>(c, assembly);
    return {1};
  }
  std::int64_t count = 0;
  const gc::Local<List> children(c.mutator(), c.tx.read(super, &Assembly::children));
  for_each_item<Assembly>(c.tx, children, [&](const gc::Local<Assembly>& child) {
    look_or_toggle<kChanges>(c, child);
    ++count;
  });
  return {count};
}
template <class Access>
Outcome op6(Context<Access>& c) {
  return siblings<false>(c, c.roots.complexes, c.settings.sizes.complexes());
}
template <class Access>
Outcome op7(Context<Access>& c) {
  return siblings<false>(c, c.roots.bases, c.settings.sizes.bases());
}
template <class Access>
Outcome op12(Context<Access>& c) {
  return siblings<true>(c, c.roots.complexes, c.settings.sizes.complexes());
}
template <class Access>
Outcome op13(Context<Access>& c) {
  return siblings<true>(c, c.roots.bases, c.settings.sizes.bases());
}

// The components of a random base assembly.
template <bool kChanges, class Access>
Outcome components(Context<Access>& c) {
  const gc::Local<Assembly> base(c.mutator(),
                                 map_find<Assembly>(c.tx, c.roots.bases, c.any_id(c.settings.sizes.bases())));
  if (!base) return kFailed;
  std::int64_t count = 0;
  const gc::Local<List> children(c.mutator(), c.tx.read(base, &Assembly::children));
  for_each_item<CompositePart>(c.tx, children, [&](const gc::Local<CompositePart>& part) {
    if constexpr (kChanges)
      toggle_date(c, part);
    else
      c.tx.enlist_read(part);
    ++count;
  });
  return {count};
}
template <class Access>
Outcome op8(Context<Access>& c) {
  return components<false>(c);
}
template <class Access>
Outcome op14(Context<Access>& c) {
  return components<true>(c);
}

}  // namespace loam::workloads::managed::bench7
