// BinaryHeap: a priority queue in an array; the greatest element first, of equal ones any.
//   Source Williams, CACM 1964.   Cost: O(log n) per operation. A full array is replaced by one twice as long, whose
//   copying reads and writes every element: a transaction that does it conflicts with all others.
//   Caveat: constructor, destructor and verify() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace loam::structures {

// Element: a word, trivially copyable.  Before: before(a, b), whether a stands above b; reads nothing that a transaction
// changes.
template <class Element, class Before>
class BinaryHeap {
  static_assert(sizeof(Element) == 8 && std::is_trivially_copyable_v<Element>);

 public:
  // Room for `capacity` elements, at least one. access: makes the array, as one of a transaction would
  template <class Access>
  BinaryHeap(Access& access, std::uint64_t capacity)
      : top_{allocate(access, capacity == 0 ? 1 : capacity), 0, capacity == 0 ? 1 : capacity} {}
  BinaryHeap(const BinaryHeap&) = delete;
  BinaryHeap& operator=(const BinaryHeap&) = delete;
  ~BinaryHeap() { std::free(top_.elements); }

  template <class Access>
  void insert(Access& access, Element element) {
    const std::uint64_t size = access.read(top_.size);
    Element* elements = access.read(top_.elements);
    if (size == access.read(top_.capacity)) elements = grow(access, elements, size);
    std::uint64_t at = size;
    while (at > 0) {
      const std::uint64_t parent = (at - 1) / 2;
      const Element above = access.read(elements[parent]);
      if (!Before::before(element, above)) break;
      access.write(elements[at], above);
      at = parent;
    }
    access.write(elements[at], element);
    access.write(top_.size, size + 1);
  }

  // False, and nothing is written, if the heap is empty; else `element` becomes the first, which leaves the heap.
  template <class Access>
  bool remove(Access& access, Element& element) {
    const std::uint64_t size = access.read(top_.size);
    if (size == 0) return false;
    Element* const elements = access.read(top_.elements);
    element = access.read(elements[0]);
    access.write(top_.size, size - 1);
    if (size == 1) return true;
    sink(access, elements, size - 1, access.read(elements[size - 1]));
    return true;
  }

  // P1 no element stands above one that it should be below.   P2 the elements fit into the array.
  Verdict verify() const {
    Verdict verdict;
    if (top_.size > top_.capacity) return {0, "P2: the elements fit into the array"};
    for (; verdict.elements < top_.size; ++verdict.elements)
      if (verdict.elements > 0 &&
          Before::before(top_.elements[verdict.elements], top_.elements[(verdict.elements - 1) / 2]))
        return {verdict.elements, "P1: no element stands above one that it should be below"};
    return verdict;
  }

  template <class Visit>  // visit(element), in no order
  void for_each(Visit&& visit) const {
    for (std::uint64_t i = 0; i < top_.size; ++i) visit(top_.elements[i]);
  }

 private:
  struct Top {
    Element* elements;
    std::uint64_t size, capacity;
  };

  template <class Access>
  static Element* allocate(Access& access, std::uint64_t capacity) {
    return static_cast<Element*>(access.allocate(capacity * sizeof(Element)));
  }

  // returns the new array
  template <class Access>
  [[gnu::noinline]] Element* grow(Access& access, Element* elements, std::uint64_t size) {
    Element* const longer = allocate(access, 2 * size);
    // Nobody else can see the new array, but this transaction will write to it like to any other.
    for (std::uint64_t i = 0; i < size; ++i) access.write(longer[i], access.read(elements[i]));
    access.release(elements);
    access.write(top_.elements, longer);
    access.write(top_.capacity, 2 * size);
    return longer;
  }

  // Puts `element` where it belongs into a heap of `size` elements whose first place is free.
  template <class Access>
  static void sink(Access& access, Element* elements, std::uint64_t size, Element element) {
    std::uint64_t at = 0;
    for (std::uint64_t child; (child = 2 * at + 1) < size; at = child) {
      Element below = access.read(elements[child]);
      if (child + 1 < size) {
        const Element right = access.read(elements[child + 1]);
        if (Before::before(right, below)) {
          below = right;
          ++child;
        }
      }
      if (!Before::before(below, element)) break;
      access.write(elements[at], below);
    }
    access.write(elements[at], element);
  }

  Top top_;
};

}  // namespace loam::structures
