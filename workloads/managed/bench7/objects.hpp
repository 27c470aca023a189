// The objects of STMBench7, in the managed heap.
//   A module has a manual and a tree of assemblies. The leaves of the tree (level 1, "base") use composite parts; each of
//   those has a document and a graph of atomic parts. Six indexes lead to them.
//   An assembly of level 1 has composite parts as children, one of a higher level ("complex") has assemblies.
//   Titles and types are numbers: "Composite Part #7" is 7, "type #3" is 3.
#pragma once

#include "runtime/gc/gc.hpp"

#include <cstdint>

namespace loam::workloads::managed::bench7 {

using Number = std::int32_t;
using Text = gc::ValueArray<char>;
using Items = gc::RefArray<gc::Object>;

// An array that grows, as a set (the caller asks first) or as a bag. list.hpp
struct List : gc::Object {
  gc::Ref<Items> items;
  gc::Value<std::uint64_t> count;
  static gc::Descriptor describe() { return gc::describe<List>("list", &List::items); }
};

// An ordered map. map.hpp
struct MapNode : gc::Object {
  gc::Ref<MapNode> left, right;
  gc::Ref<gc::Object> value;
  gc::Value<std::uint64_t> key;
  static gc::Descriptor describe() {
    return gc::describe<MapNode>("map node", &MapNode::left, &MapNode::right, &MapNode::value);
  }
};
struct Map : gc::Object {
  gc::Ref<MapNode> root;
  static gc::Descriptor describe() { return gc::describe<Map>("map", &Map::root); }
};

// Free identifiers, first in, first out. pool.hpp
struct Pool : gc::Object {
  gc::Ref<gc::ValueArray<Number>> ring;
  gc::Value<std::uint64_t> head, count;
  static gc::Descriptor describe() { return gc::describe<Pool>("pool", &Pool::ring); }
};

struct Document : gc::Object {
  gc::Ref<Text> text;
  gc::Ref<gc::Object> part;  // CompositePart
  gc::Value<Number> id;
  static gc::Descriptor describe() { return gc::describe<Document>("document", &Document::text, &Document::part); }
};

struct AtomicPart : gc::Object {
  gc::Ref<List> to, from;    // of Connection
  gc::Ref<gc::Object> part;  // CompositePart
  gc::Value<Number> id, type, date, x, y;
  static gc::Descriptor describe() {
    return gc::describe<AtomicPart>("atomic part", &AtomicPart::to, &AtomicPart::from, &AtomicPart::part);
  }
};

// Never changes. A connection is two of them: one in source.to, one the other way round in destination.from.
struct Connection : gc::Object {
  gc::Ref<AtomicPart> source, destination;
  gc::Value<Number> type, length;
  static gc::Descriptor describe() {
    return gc::describe<Connection>("connection", &Connection::source, &Connection::destination);
  }
};

struct CompositePart : gc::Object {
  gc::Ref<Document> document;
  gc::Ref<AtomicPart> root;
  gc::Ref<Map> parts;     // atomic parts by id
  gc::Ref<List> used_in;  // a bag of base assemblies
  gc::Value<Number> id, type, date;
  static gc::Descriptor describe() {
    return gc::describe<CompositePart>("composite part", &CompositePart::document, &CompositePart::root,
                                       &CompositePart::parts, &CompositePart::used_in);
  }
};

struct Assembly : gc::Object {
  gc::Ref<Assembly> super;
  gc::Ref<List> children;  // level 1: a bag of composite parts; above: a set of assemblies
  gc::Value<Number> id, type, date, level;
  static gc::Descriptor describe() { return gc::describe<Assembly>("assembly", &Assembly::super, &Assembly::children); }
};

struct Manual : gc::Object {
  gc::Ref<Text> text;
  gc::Value<Number> id;
  static gc::Descriptor describe() { return gc::describe<Manual>("manual", &Manual::text); }
};

struct Module : gc::Object {
  gc::Ref<Manual> manual;
  gc::Ref<Assembly> root;
  gc::Value<Number> id, type, date;
  static gc::Descriptor describe() { return gc::describe<Module>("module", &Module::manual, &Module::root); }
};

// All of it. Its references never change.
struct Everything : gc::Object {
  gc::Ref<Module> module;
  gc::Ref<Map> atomic_by_id, atomic_by_date;  // by date: to maps of atomic parts by id
  gc::Ref<Map> documents, composites, bases, complexes;
  gc::Ref<Pool> atomic_ids, composite_ids, base_ids, complex_ids;
  static gc::Descriptor describe() {
    return gc::describe<Everything>("everything", &Everything::module, &Everything::atomic_by_id,
                                    &Everything::atomic_by_date, &Everything::documents, &Everything::composites,
                                    &Everything::bases, &Everything::complexes, &Everything::atomic_ids,
                                    &Everything::composite_ids, &Everything::base_ids, &Everything::complex_ids);
  }
};

}  // namespace loam::workloads::managed::bench7
