// Making and removing the parts of STMBench7: at set-up, and in structural modifications.
//   Before any of these is called its caller has asked whether there are enough identifiers.
#pragma once

#include "workloads/managed/bench7/list.hpp"
#include "workloads/managed/bench7/map.hpp"
#include "workloads/managed/bench7/pool.hpp"
#include "workloads/managed/bench7/text.hpp"

namespace loam::workloads::managed::bench7 {

// ---- the index by date: sets of atomic parts, made when they are needed and never removed

template <class Access>
void add_to_date(const Context<Access>& c, const gc::Local<AtomicPart>& part) {
  const auto date = static_cast<std::uint64_t>(c.tx.read(part, &AtomicPart::date));
  gc::Local<Map> set(c.mutator(), map_find<Map>(c.tx, c.roots.atomic_by_date, date));
  if (!set) {
    set = make_map(c.tx);
    map_insert(c.tx, c.roots.atomic_by_date, date, set);
  }
  map_insert(c.tx, set, static_cast<std::uint64_t>(c.tx.read(part, &AtomicPart::id)), part);
}

template <class Access>
void remove_from_date(const Context<Access>& c, const gc::Local<AtomicPart>& part) {
  const auto date = static_cast<std::uint64_t>(c.tx.read(part, &AtomicPart::date));
  const gc::Local<Map> set(c.mutator(), map_find<Map>(c.tx, c.roots.atomic_by_date, date));
  map_remove(c.tx, set, static_cast<std::uint64_t>(c.tx.read(part, &AtomicPart::id)));
}

// ---- composite parts

template <class Access>
void connect(const Context<Access>& c, const gc::Local<AtomicPart>& source, const gc::Local<AtomicPart>& destination) {
  const auto type = static_cast<Number>(c.random.below(kTypes));
  const auto length = static_cast<Number>(1 + c.random.below(kLengths));
  gc::Local<Connection> connection(c.mutator());
  gc::Local<List> list(c.mutator());
  const auto add = [&](const gc::Local<AtomicPart>& from, const gc::Local<AtomicPart>& to,
                       const gc::Local<AtomicPart>& holder, gc::Ref<List> AtomicPart::* member) {
    auto* const made = c.tx.template create<Connection>();
    made->source.init(from.get());
    made->destination.init(to.get());
    made->type.init(type);
    made->length.init(length);
    connection = made;
    list = c.tx.read(holder, member);
    list_add(c.tx, list, connection);
  };
  add(source, destination, source, &AtomicPart::to);
  add(destination, source, destination, &AtomicPart::from);
}

template <class Access>
AtomicPart* make_atomic_part(const Context<Access>& c, const gc::Local<CompositePart>& whole) {
  const Number id = take(c.tx, c.roots.atomic_ids);
  const gc::Local<List> to(c.mutator(), make_list(c.tx)), from(c.mutator(), make_list(c.tx));
  auto* const made = c.tx.template create<AtomicPart>();
  made->to.init(to.get());
  made->from.init(from.get());
  made->part.init(whole.get());
  made->id.init(id);
  made->type.init(static_cast<Number>(c.random.below(kTypes)));
  made->date.init(c.between(kDateLeast, kDateMost));
  const auto x = static_cast<Number>(c.random.below(kPlaces));
  made->x.init(x);
  made->y.init(x + 1);
  const gc::Local<AtomicPart> part(c.mutator(), made);
  const gc::Local<Map> parts(c.mutator(), c.tx.read(whole, &CompositePart::parts));
  map_insert(c.tx, parts, static_cast<std::uint64_t>(id), part);
  map_insert(c.tx, c.roots.atomic_by_id, static_cast<std::uint64_t>(id), part);
  add_to_date(c, part);
  return part.get();
}

// A ring of all atomic parts, then connections from each to any, until it has as many as it shall have.
template <class Access>
void make_graph(const Context<Access>& c, const gc::Local<CompositePart>& whole) {
  const std::uint32_t count = c.settings.sizes.atomic_parts;
  const gc::Local<Items> parts(c.mutator(), c.tx.template create_array<Items>(count));
  gc::Local<gc::Object> item(c.mutator());
  gc::Local<AtomicPart> part(c.mutator()), other(c.mutator());
  for (std::uint32_t i = 0; i < count; ++i) {
    part = make_atomic_part(c, whole);
    item = part.get();
    c.tx.write_at(parts, i, item);
    if (i == 0) c.tx.write(whole, &CompositePart::root, part);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    part = static_cast<AtomicPart*>(c.tx.read_at(parts, i));
    other = static_cast<AtomicPart*>(c.tx.read_at(parts, (i + 1) % count));
    connect(c, part, other);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    part = static_cast<AtomicPart*>(c.tx.read_at(parts, i));
    for (unsigned k = 1; k < kConnections; ++k) {
      other = static_cast<AtomicPart*>(c.tx.read_at(parts, c.random.below(count)));
      connect(c, part, other);
    }
  }
}

template <class Access>
CompositePart* make_composite_part(const Context<Access>& c) {
  const Number id = take(c.tx, c.roots.composite_ids);
  const bool is_young = c.random.below(100) < kYoungPercent;
  const Number date = is_young ? c.between(kYoungLeast, kYoungMost) : c.between(0, kOldMost);
  const gc::Local<Text> text(c.mutator(), make_text(c.tx, document_sentence(id), c.settings.sizes.document_chars));
  const gc::Local<Map> parts(c.mutator(), make_map(c.tx));
  const gc::Local<List> used_in(c.mutator(), make_list(c.tx));
  auto* const about = c.tx.template create<Document>();
  about->text.init(text.get());
  about->part.init(nullptr);
  about->id.init(id);
  const gc::Local<Document> document(c.mutator(), about);
  auto* const made = c.tx.template create<CompositePart>();
  made->document.init(document.get());
  made->root.init(nullptr);
  made->parts.init(parts.get());
  made->used_in.init(used_in.get());
  made->id.init(id);
  made->type.init(static_cast<Number>(c.random.below(kTypes)));
  made->date.init(date);
  const gc::Local<CompositePart> whole(c.mutator(), made);
  const gc::Local<gc::Object> back(c.mutator(), whole.get());
  c.tx.write(document, &Document::part, back);
  make_graph(c, whole);
  map_insert(c.tx, c.roots.documents, static_cast<std::uint64_t>(id), document);
  map_insert(c.tx, c.roots.composites, static_cast<std::uint64_t>(id), whole);
  return whole.get();
}

template <class Access>
void link(const Context<Access>& c, const gc::Local<Assembly>& base, const gc::Local<CompositePart>& part) {
  const gc::Local<List> components(c.mutator(), c.tx.read(base, &Assembly::children));
  const gc::Local<List> used_in(c.mutator(), c.tx.read(part, &CompositePart::used_in));
  list_add(c.tx, components, part);
  list_add(c.tx, used_in, base);
}

template <class Access>
void remove_composite_part(const Context<Access>& c, const gc::Local<CompositePart>& whole) {
  const Number id = c.tx.read(whole, &CompositePart::id);
  const gc::Local<Map> parts(c.mutator(), c.tx.read(whole, &CompositePart::parts));
  map_for_each<AtomicPart>(c.tx, parts, [&](const gc::Local<AtomicPart>& part) {
    const Number one = c.tx.read(part, &AtomicPart::id);
    remove_from_date(c, part);
    map_remove(c.tx, c.roots.atomic_by_id, static_cast<std::uint64_t>(one));
    give(c.tx, c.roots.atomic_ids, one);
  });
  const gc::Local<List> used_in(c.mutator(), c.tx.read(whole, &CompositePart::used_in));
  for_each_item<Assembly>(c.tx, used_in, [&](const gc::Local<Assembly>& base) {
    const gc::Local<List> components(c.mutator(), c.tx.read(base, &Assembly::children));
    list_remove(c.tx, components, whole);
  });
  map_remove(c.tx, c.roots.documents, static_cast<std::uint64_t>(id));
  map_remove(c.tx, c.roots.composites, static_cast<std::uint64_t>(id));
  give(c.tx, c.roots.composite_ids, id);
}

// ---- assemblies

// A parent is registered after its children. `super` is null for the root.
template <class Access>
Assembly* make_assembly(const Context<Access>& c, Number level, const gc::Local<Assembly>& super) {
  const Number id = take(c.tx, level == 1 ? c.roots.base_ids : c.roots.complex_ids);
  const gc::Local<List> children(c.mutator(), make_list(c.tx));
  auto* const made = c.tx.template create<Assembly>();
  made->super.init(super.get());
  made->children.init(children.get());
  made->id.init(id);
  made->type.init(static_cast<Number>(c.random.below(kTypes)));
  made->date.init(c.between(kDateLeast, kDateMost));
  made->level.init(level);
  const gc::Local<Assembly> assembly(c.mutator(), made);
  gc::Local<Assembly> child(c.mutator());
  for (unsigned i = 0; level != 1 && i < kFanOut; ++i) {
    child = make_assembly(c, level - 1, assembly);
    list_add(c.tx, children, child);
  }
  map_insert(c.tx, level == 1 ? c.roots.bases : c.roots.complexes, static_cast<std::uint64_t>(id), assembly);
  return assembly.get();
}

// With all that is below. It is taken out of its parent by the caller.
template <class Access>
void remove_assembly(const Context<Access>& c, const gc::Local<Assembly>& assembly) {
  const bool is_base = c.tx.read(assembly, &Assembly::level) == 1;
  const Number id = c.tx.read(assembly, &Assembly::id);
  const gc::Local<List> children(c.mutator(), c.tx.read(assembly, &Assembly::children));
  if (is_base) {
    for_each_item<CompositePart>(c.tx, children, [&](const gc::Local<CompositePart>& part) {
      const gc::Local<List> used_in(c.mutator(), c.tx.read(part, &CompositePart::used_in));
      list_remove(c.tx, used_in, assembly);
    });
  } else {
    for_each_item<Assembly>(c.tx, children, [&](const gc::Local<Assembly>& child) { remove_assembly(c, child); });
  }
  map_remove(c.tx, is_base ? c.roots.bases : c.roots.complexes, static_cast<std::uint64_t>(id));
  give(c.tx, is_base ? c.roots.base_ids : c.roots.complex_ids, id);
}

// ---- all of it

// The empty indexes and full pools.
template <class Access>
Everything* make_roots(Access& tx, const Sizes& sizes) {
  gc::Local<Everything> all(tx.mutator(), tx.template create<Everything>());
  gc::Local<Map> map(tx.mutator());
  gc::Local<Pool> pool(tx.mutator());
  for (const auto index : {&Everything::atomic_by_id, &Everything::atomic_by_date, &Everything::documents,
                           &Everything::composites, &Everything::bases, &Everything::complexes}) {
    map = make_map(tx);
    tx.write(all, index, map);
  }
  const auto fill = [&](gc::Ref<Pool> Everything::* ids, std::uint32_t objects) {
    pool = make_pool(tx, Sizes::pool_of(objects));
    tx.write(all, ids, pool);
  };
  fill(&Everything::atomic_ids, sizes.atomics());
  fill(&Everything::composite_ids, sizes.composite_parts);
  fill(&Everything::base_ids, sizes.bases());
  fill(&Everything::complex_ids, sizes.complexes());
  const gc::Local<Text> text(tx.mutator(), make_text(tx, manual_sentence(1), sizes.manual_chars));
  auto* const about = tx.template create<Manual>();
  about->text.init(text.get());
  about->id.init(1);
  const gc::Local<Manual> manual(tx.mutator(), about);
  auto* const made = tx.template create<Module>();
  made->manual.init(manual.get());
  made->root.init(nullptr);
  made->id.init(1);
  made->type.init(0);
  made->date.init(kDateLeast);
  const gc::Local<Module> module(tx.mutator(), made);
  tx.write(all, &Everything::module, module);
  return all.get();
}

template <class Access>
void make_everything(const Context<Access>& c) {
  for (std::uint32_t i = 0; i < c.settings.sizes.composite_parts; ++i) make_composite_part(c);
  const gc::Local<Assembly> none(c.mutator());
  const gc::Local<Assembly> root(c.mutator(), make_assembly(c, c.settings.sizes.levels, none));
  c.tx.write(c.roots.module, &Module::root, root);
  map_for_each<Assembly>(c.tx, c.roots.bases, [&](const gc::Local<Assembly>& base) {
    for (unsigned k = 0; k < kFanOut; ++k) {
      const gc::Local<CompositePart> part(
          c.mutator(),
          map_find<CompositePart>(c.tx, c.roots.composites, 1 + c.random.below(c.settings.sizes.composite_parts)));
      link(c, base, part);
    }
  });
}

}  // namespace loam::workloads::managed::bench7
