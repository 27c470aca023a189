// Whether the structure of STMBench7 is whole.
#pragma once

#include "workloads/managed/bench7/text.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace loam::workloads::managed::bench7 {
namespace verification {

using Pairs = std::vector<std::pair<const void*, const void*>>;

// relaxed, everywhere: there is one thread. Nothing is allocated in the heap, so plain pointers stay good.
template <class T>
T& at(gc::Ref<T>& reference) {
  return *static_cast<T*>(reference.slot().load(std::memory_order_relaxed));
}
template <class V>
V at(const gc::Value<V>& value) {
  return value.slot().load(std::memory_order_relaxed);
}

template <class T, class Visit>
void each(List& list, Visit&& visit) {
  for (std::size_t i = 0; i < at(list.count); ++i)
    visit(*static_cast<T*>(at(list.items).at<gc::Ref<gc::Object>>(i).slot().load(std::memory_order_relaxed)));
}

template <class Visit>
void each_below(gc::Object* node, Visit& visit) {
  if (node == nullptr) return;
  auto& one = *static_cast<MapNode*>(node);
  each_below(one.left.slot().load(std::memory_order_relaxed), visit);
  visit(at(one.key), at(one.value));
  each_below(one.right.slot().load(std::memory_order_relaxed), visit);
}
template <class T, class Visit>
void each(Map& map, Visit&& visit) {
  auto typed = [&](std::uint64_t key, gc::Object& value) { visit(key, static_cast<T&>(value)); };
  each_below(map.root.slot().load(std::memory_order_relaxed), typed);
}

// The values of an index, by their keys; a free key has null.
template <class T>
std::vector<T*> entries_of(Map& map, std::size_t keys) {
  std::vector<T*> all(keys + 1);
  each<T>(map, [&](std::uint64_t key, T& value) {
    if (key < all.size()) all[key] = &value;
  });
  return all;
}

class Verification {
 public:
  Verification(Everything& all, const Sizes& sizes)
      : all_(all),
        sizes_(sizes),
        atomics_(entries_of<AtomicPart>(at(all.atomic_by_id), Sizes::pool_of(sizes.atomics()))),
        composites_(entries_of<CompositePart>(at(all.composites), Sizes::pool_of(sizes.composite_parts))),
        documents_(entries_of<Document>(at(all.documents), Sizes::pool_of(sizes.composite_parts))),
        bases_(entries_of<Assembly>(at(all.bases), Sizes::pool_of(sizes.bases()))),
        complexes_(entries_of<Assembly>(at(all.complexes), Sizes::pool_of(sizes.complexes()))) {}

  const char* run() {
    auto& module = at(all_.module);
    each<CompositePart>(at(all_.composites), [&](std::uint64_t key, CompositePart& part) {
      expect(key == number(part.id), "a composite part is in the index under another number");
      check(part);
    });
    auto& root = at(module.root);
    expect(root.super.slot().load(std::memory_order_relaxed) == nullptr, "the root of the assemblies has a parent");
    check(root, sizes_.levels);
    std::sort(components_.begin(), components_.end());
    std::sort(used_in_.begin(), used_in_.end());
    expect(components_ == used_in_, "a composite part and a base assembly do not know each other");
    check_dates();
    check_manual(at(module.manual));
    check_pool(at(all_.atomic_ids), atomics_, reached_atomics_);
    check_pool(at(all_.composite_ids), composites_, reached_composites_);
    check_pool(at(all_.base_ids), bases_, reached_bases_);
    check_pool(at(all_.complex_ids), complexes_, reached_complexes_);
    expect(static_cast<std::size_t>(std::count(documents_.begin(), documents_.end(), nullptr)) ==
               documents_.size() - reached_composites_,
           "the index of documents has entries of its own");
    return problem_;
  }

 private:
  void expect(bool holds, const char* problem) {
    if (!holds && problem_ == nullptr) problem_ = problem;
  }
  static std::size_t number(const gc::Value<Number>& id) { return static_cast<std::size_t>(at(id)); }
  template <class T>
  static bool is(const std::vector<T*>& all, const gc::Value<Number>& id, const T& object) {
    return number(id) < all.size() && all[number(id)] == &object;
  }
  static bool is_between(Number value, Number least, Number most) { return value >= least - 1 && value <= most + 1; }

  void check(CompositePart& part) {
    ++reached_composites_;
    const Number date = at(part.date);
    expect(is_between(date, 0, kOldMost) || is_between(date, kYoungLeast, kYoungMost),
           "a composite part has an impossible date");
    auto& document = at(part.document);
    expect(is(documents_, part.id, document) && number(document.id) == number(part.id),
           "a document is not in its index");
    expect(&at(document.part) == &part, "a document belongs to another composite part");
    check_text(at(document.text), document_sentence(at(document.id)), sizes_.document_chars, true);
    std::size_t count = 0;
    bool has_root = false;
    Pairs to, from;
    each<AtomicPart>(at(part.parts), [&](std::uint64_t key, AtomicPart& one) {
      ++count;
      has_root = has_root || &one == &at(part.root);
      expect(key == number(one.id) && is(atomics_, one.id, one), "an atomic part is not in its index");
      expect(&at(one.part) == &part, "an atomic part belongs to another composite part");
      const Number x = at(one.x), y = at(one.y);
      expect(x - y == 1 || y - x == 1, "x and y of an atomic part are not neighbours");
      expect(at(at(one.to).count) == kConnections, "an atomic part has another number of connections");
      each<Connection>(at(one.to), [&](Connection& connection) {
        expect(&at(connection.source) == &one, "a connection begins at another atomic part");
        expect(&at(at(connection.destination).part) == &part, "a connection leads out of its composite part");
        to.emplace_back(&one, &at(connection.destination));
      });
      each<Connection>(at(one.from),
                       [&](Connection& connection) { from.emplace_back(&at(connection.destination), &one); });
    });
    std::sort(to.begin(), to.end());
    std::sort(from.begin(), from.end());
    expect(to == from, "a connection is known at one of its ends only");
    expect(has_root && count == sizes_.atomic_parts, "a composite part has lost or won atomic parts");
    reached_atomics_ += count;
    each<Assembly>(at(part.used_in), [&](Assembly& base) { used_in_.emplace_back(&base, &part); });
  }

  void check(Assembly& assembly, Number level) {
    expect(at(assembly.level) == level, "an assembly is on another level than its place says");
    expect(is_between(at(assembly.date), kDateLeast, kDateMost), "an assembly has an impossible date");
    expect(is(level == 1 ? bases_ : complexes_, assembly.id, assembly), "an assembly is not in its index");
    ++(level == 1 ? reached_bases_ : reached_complexes_);
    if (problem_ != nullptr) return;
    if (level == 1) {
      each<CompositePart>(at(assembly.children), [&](CompositePart& part) {
        expect(is(composites_, part.id, part), "a component was deleted");
        components_.emplace_back(&assembly, &part);
      });
      return;
    }
    expect(at(at(assembly.children).count) != 0, "a complex assembly has no children");
    each<Assembly>(at(assembly.children), [&](Assembly& child) {
      expect(child.super.slot().load(std::memory_order_relaxed) == &assembly, "an assembly has another parent");
      check(child, level - 1);
    });
  }

  void check_dates() {
    std::size_t count = 0;
    each<Map>(at(all_.atomic_by_date), [&](std::uint64_t date, Map& set) {
      expect(is_between(static_cast<Number>(date), kDateLeast, kDateMost), "an atomic part has an impossible date");
      each<AtomicPart>(set, [&](std::uint64_t key, AtomicPart& part) {
        ++count;
        expect(key == number(part.id) && is(atomics_, part.id, part) && number(part.date) == date,
               "an atomic part is in the index under another date");
      });
    });
    expect(count == reached_atomics_, "the index of dates has lost or won atomic parts");
  }

  void check_manual(Manual& manual) {
    auto& text = at(manual.text);
    const auto chars = chars_of(text);
    if (chars.front() == kExchanged) std::replace(chars.begin(), chars.end(), kExchanged, kCounted);
    check_text(text, manual_sentence(at(manual.id)), sizes_.manual_chars, false);
  }

  void check_text(Text& text, const Sentence& sentence, std::size_t room, bool is_document) {
    std::string expected;
    const std::string_view one = sentence.text();
    for (std::size_t i = 0; i < std::max<std::size_t>(room / one.size(), 1); ++i) expected += one;
    const auto chars = chars_of(text);
    const std::string_view found(chars.data(), chars.size());
    if (is_document && found.starts_with(kNewStart)) expected.replace(0, kOldStart.size(), kNewStart);
    expect(found == expected, "a text is damaged");
  }

  // What is reached is in the index, so as many as there are: all numbers are free or used, and no entry is left over.
  template <class T>
  void check_pool(Pool& pool, const std::vector<T*>& entries, std::size_t reached) {
    std::vector<bool> is_free(entries.size());
    auto& ring = at(pool.ring);
    const std::uint64_t head = at(pool.head), count = at(pool.count);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::size_t>(at(ring.at<gc::Value<Number>>((head + i) % ring.length())));
      expect(id < entries.size() && !is_free[id] && entries[id] == nullptr, "a number is free and used at once");
      if (id < entries.size()) is_free[id] = true;
    }
    const auto used = entries.size() - static_cast<std::size_t>(std::count(entries.begin(), entries.end(), nullptr));
    expect(used == reached, "an index has entries of its own");
    expect(used + count == ring.length(), "a number is lost");
  }

  Everything& all_;
  const Sizes& sizes_;
  std::vector<AtomicPart*> atomics_;
  std::vector<CompositePart*> composites_;
  std::vector<Document*> documents_;
  std::vector<Assembly*> bases_, complexes_;
  Pairs components_, used_in_;
  std::size_t reached_atomics_ = 0, reached_composites_ = 0, reached_bases_ = 0, reached_complexes_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace verification

// By one thread while no other one uses the heap. Collects nothing.
// returns what is wrong, or null
inline const char* verify(Everything& all, const Sizes& sizes) { return verification::Verification(all, sizes).run(); }

}  // namespace loam::workloads::managed::bench7
