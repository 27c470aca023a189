// The eight structural modifications of STMBench7. Each looks first whether it can be done, and fails before it writes.
#pragma once

#include "workloads/managed/bench7/walks.hpp"

namespace loam::workloads::managed::bench7 {

template <class Access>
Assembly* any_base(const Context<Access>& c) {
  return map_find<Assembly>(c.tx, c.roots.bases, c.any_id(c.settings.sizes.bases()));
}
template <class Access>
Assembly* any_complex(const Context<Access>& c) {
  return map_find<Assembly>(c.tx, c.roots.complexes, c.any_id(c.settings.sizes.complexes()));
}
template <class Access>
CompositePart* any_composite(const Context<Access>& c) {
  return map_find<CompositePart>(c.tx, c.roots.composites, c.any_id(c.settings.sizes.composite_parts));
}

// SM1: a new composite part, which nobody uses.
template <class Access>
Outcome sm1(Context<Access>& c) {
  if (available(c.tx, c.roots.composite_ids) == 0 ||
      available(c.tx, c.roots.atomic_ids) < c.settings.sizes.atomic_parts)
    return kFailed;
  make_composite_part(c);
  return {1};
}

// SM2: deletes a composite part.
template <class Access>
Outcome sm2(Context<Access>& c) {
  const gc::Local<CompositePart> part(c.mutator(), any_composite(c));
  if (!part) return kFailed;
  remove_composite_part(c, part);
  return {1};
}

// SM3: one more component of a base assembly.
template <class Access>
Outcome sm3(Context<Access>& c) {
  const gc::Local<CompositePart> part(c.mutator(), any_composite(c));
  const gc::Local<Assembly> base(c.mutator(), any_base(c));
  if (!part || !base) return kFailed;
  link(c, base, part);
  return {1};
}

// SM4: one less.
template <class Access>
Outcome sm4(Context<Access>& c) {
  const gc::Local<Assembly> base(c.mutator(), any_base(c));
  if (!base) return kFailed;
  const gc::Local<List> components(c.mutator(), c.tx.read(base, &Assembly::children));
  const auto count = static_cast<std::uint32_t>(list_size(c.tx, components));
  if (count == 0) return kFailed;
  const gc::Local<CompositePart> part(c.mutator(), list_at<CompositePart>(c.tx, components, c.random.below(count)));
  const gc::Local<List> used_in(c.mutator(), c.tx.read(part, &CompositePart::used_in));
  list_remove(c.tx, components, part);
  list_remove(c.tx, used_in, base);
  return {1};
}

template <class Access>
void add_child(const Context<Access>& c, const gc::Local<Assembly>& super) {
  const Number level = c.tx.read(super, &Assembly::level) - 1;
  const gc::Local<List> children(c.mutator(), c.tx.read(super, &Assembly::children));
  const gc::Local<Assembly> child(c.mutator(), make_assembly(c, level, super));
  list_add(c.tx, children, child);
}

// SM5: a base assembly more, beside another one.
template <class Access>
Outcome sm5(Context<Access>& c) {
  const gc::Local<Assembly> base(c.mutator(), any_base(c));
  if (!base || available(c.tx, c.roots.base_ids) == 0) return kFailed;
  const gc::Local<Assembly> super(c.mutator(), c.tx.read(base, &Assembly::super));
  add_child(c, super);
  return {1};
}

// SM6, SM8: deletes an assembly with all that is below; not the root, and not the only child.
template <class Access>
Outcome remove_any(Context<Access>& c, const gc::Local<Assembly>& assembly) {
  if (!assembly) return kFailed;
  const gc::Local<Assembly> super(c.mutator(), c.tx.read(assembly, &Assembly::super));
  if (!super) return kFailed;
  const gc::Local<List> children(c.mutator(), c.tx.read(super, &Assembly::children));
  if (list_size(c.tx, children) == 1) return kFailed;
  list_remove(c.tx, children, assembly);
  remove_assembly(c, assembly);
  return {1};
}
template <class Access>
Outcome sm6(Context<Access>& c) {
  const gc::Local<Assembly> base(c.mutator(), any_base(c));
  return remove_any(c, base);
}
template <class Access>
Outcome sm8(Context<Access>& c) {
  const gc::Local<Assembly> assembly(c.mutator(), any_complex(c));
  return remove_any(c, assembly);
}

// SM7: a full subtree more, below a complex assembly.
template <class Access>
Outcome sm7(Context<Access>& c) {
  const gc::Local<Assembly> super(c.mutator(), any_complex(c));
  if (!super) return kFailed;
  const Number level = c.tx.read(super, &Assembly::level) - 1;
  const std::uint32_t bases = Sizes::power(level - 1), complexes = (bases - 1) / (kFanOut - 1);
  if (available(c.tx, c.roots.base_ids) < bases || available(c.tx, c.roots.complex_ids) < complexes) return kFailed;
  add_child(c, super);
  return {1};
}

}  // namespace loam::workloads::managed::bench7
