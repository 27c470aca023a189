// Ways through the structure of STMBench7 that several operations take.
#pragma once

#include "workloads/managed/bench7/build.hpp"

namespace loam::workloads::managed::bench7 {

// Which objects a walk has visited, by their identifiers: a hash set in the managed heap, new for each walk. It is the
// only garbage of most operations. Nobody else can reach it, so it needs no enlistments.
class VisitedSet {
 public:
  explicit VisitedSet(gc::Mutator& mutator)
      : mutator_(mutator), heads_(mutator, mutator.allocate_array<gc::RefArray<Visited>>(kHeads)) {}

  // returns whether it is new
  bool add(Number id) {
    const std::size_t at = static_cast<std::size_t>(id) % kHeads;
    for (const Visited* one = head(at); one != nullptr; one = next(*one))
      if (one->id.slot().load(std::memory_order_relaxed) == id) return false;
    auto* const made = mutator_.allocate<Visited>();
    made->next.init(head(at));
    made->id.init(id);
    mutator_.store(heads_.get(), heads_->template at<gc::Ref<Visited>>(at), made);
    return true;
  }

 private:
  static constexpr std::size_t kHeads = 256;
  struct Visited : gc::Object {
    gc::Ref<Visited> next;
    gc::Value<Number> id;
    static gc::Descriptor describe() { return gc::describe<Visited>("visited", &Visited::next); }
  };
  // relaxed, here and above: only this thread has them.
  Visited* head(std::size_t at) const noexcept {
    return static_cast<Visited*>(heads_->at<gc::Ref<Visited>>(at).slot().load(std::memory_order_relaxed));
  }
  static const Visited* next(const Visited& one) noexcept {
    return static_cast<const Visited*>(one.next.slot().load(std::memory_order_relaxed));
  }

  gc::Mutator& mutator_;
  gc::Local<gc::RefArray<Visited>> heads_;
};

// ---- what operations do with an object

template <class Access>
void exchange_places(const Context<Access>& c, const gc::Local<AtomicPart>& part) {
  const Number x = c.tx.read(part, &AtomicPart::x), y = c.tx.read(part, &AtomicPart::y);
  c.tx.write(part, &AtomicPart::x, y);
  c.tx.write(part, &AtomicPart::y, x);
}

// Even: one less; odd: one more.
template <class T, class Access>
void toggle_date(const Context<Access>& c, const gc::Local<T>& object) {
  const Number date = c.tx.read(object, &T::date);
  c.tx.write(object, &T::date, date % 2 == 0 ? date - 1 : date + 1);
}

template <class Access>
void toggle_indexed_date(const Context<Access>& c, const gc::Local<AtomicPart>& part) {
  remove_from_date(c, part);
  toggle_date(c, part);
  add_to_date(c, part);
}

// returns how often the letter is in it
template <class Access>
std::int64_t count_in_document(const Context<Access>& c, const gc::Local<CompositePart>& whole) {
  const gc::Local<Document> document(c.mutator(), c.tx.read(whole, &CompositePart::document));
  const gc::Local<Text> text(c.mutator(), c.tx.read(document, &Document::text));
  return count_char(c, text, kCounted);
}

template <class Access>
std::int64_t change_document(const Context<Access>& c, const gc::Local<CompositePart>& whole) {
  const gc::Local<Document> document(c.mutator(), c.tx.read(whole, &CompositePart::document));
  return exchange_start(c, document);
}

// ---- walks

template <class Access, class Visit>
void for_each_base(const Context<Access>& c, const gc::Local<Assembly>& assembly, Visit& visit) {
  if (c.tx.read(assembly, &Assembly::level) == 1) {
    visit(assembly);
    return;
  }
  const gc::Local<List> children(c.mutator(), c.tx.read(assembly, &Assembly::children));
  for_each_item<Assembly>(c.tx, children, [&](const gc::Local<Assembly>& child) { for_each_base(c, child, visit); });
}

// Each component of each base assembly, as often as it is one.
template <class Access, class Visit>
void for_each_component(const Context<Access>& c, Visit&& visit) {
  const gc::Local<Assembly> root(c.mutator(), c.tx.read(c.roots.module, &Module::root));
  auto visit_base = [&](const gc::Local<Assembly>& base) {
    const gc::Local<List> components(c.mutator(), c.tx.read(base, &Assembly::children));
    for_each_item<CompositePart>(c.tx, components, visit);
  };
  for_each_base(c, root, visit_base);
}

template <class Access, class Visit>
std::int64_t visit_part(const Context<Access>& c, const gc::Local<AtomicPart>& part, VisitedSet& visited,
                        Visit& visit) {
  if (!visited.add(c.tx.read(part, &AtomicPart::id))) return 0;
  visit(part);
  std::int64_t count = 1;
  const gc::Local<List> to(c.mutator(), c.tx.read(part, &AtomicPart::to));
  for_each_item<Connection>(c.tx, to, [&](const gc::Local<Connection>& connection) {
    const gc::Local<AtomicPart> next(c.mutator(), c.tx.read(connection, &Connection::destination));
    count += visit_part(c, next, visited, visit);
  });
  return count;
}

// Depth first, from the root part. returns how many there are
template <class Access, class Visit>
std::int64_t for_each_part(const Context<Access>& c, const gc::Local<CompositePart>& whole, Visit&& visit) {
  VisitedSet visited(c.mutator());
  const gc::Local<AtomicPart> root(c.mutator(), c.tx.read(whole, &CompositePart::root));
  return visit_part(c, root, visited, visit);
}

// A random way down the tree. returns null if the base assembly at its end has no component
template <class Access>
CompositePart* descend(const Context<Access>& c) {
  gc::Local<Assembly> assembly(c.mutator(), c.tx.read(c.roots.module, &Module::root));
  for (;;) {
    const gc::Local<List> children(c.mutator(), c.tx.read(assembly, &Assembly::children));
    const auto count = static_cast<std::uint32_t>(list_size(c.tx, children));
    if (count == 0) return nullptr;
    const std::uint32_t chosen = c.random.below(count);
    if (c.tx.read(assembly, &Assembly::level) == 1) return list_at<CompositePart>(c.tx, children, chosen);
    assembly = list_at<Assembly>(c.tx, children, chosen);
  }
}

// Calls visit(assembly) for each assembly above what uses a part, each once. returns how many
template <class Access, class Visit>
std::int64_t for_each_above(const Context<Access>& c, const gc::Local<CompositePart>& part, Visit&& visit) {
  VisitedSet visited(c.mutator());
  std::int64_t count = 0;
  const gc::Local<List> used_in(c.mutator(), c.tx.read(part, &CompositePart::used_in));
  gc::Local<Assembly> assembly(c.mutator());
  for_each_item<Assembly>(c.tx, used_in, [&](const gc::Local<Assembly>& base) {
    for (assembly = base; assembly; assembly = c.tx.read(assembly, &Assembly::super)) {
      // Identifiers of the two kinds of assemblies overlap.
      const bool is_base = c.tx.read(assembly, &Assembly::level) == 1;
      const Number id = c.tx.read(assembly, &Assembly::id);
      if (!visited.add(is_base ? 2 * id : 2 * id + 1)) return;
      visit(assembly);
      ++count;
    }
  });
  return count;
}

template <class Access>
bool has_newer_component(const Context<Access>& c, const gc::Local<Assembly>& base) {
  const Number date = c.tx.read(base, &Assembly::date);
  const gc::Local<List> components(c.mutator(), c.tx.read(base, &Assembly::children));
  bool has = false;
  for_each_item<CompositePart>(c.tx, components, [&](const gc::Local<CompositePart>& part) {
    has = has || c.tx.read(part, &CompositePart::date) > date;
  });
  return has;
}

}  // namespace loam::workloads::managed::bench7
