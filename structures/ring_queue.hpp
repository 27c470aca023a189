// RingQueue: first in, first out, in an array that doubles when it is full.
//   Source the queue of the STAMP applications (Cao Minh et al., IISWC 2008), by its description.
//   Cost   a push reads 4 words and writes 2, a pop reads 5 and writes 1: all threads meet in them. One that grows
//          reads every element in its transaction.
//   Q1 places run from 0 to capacity - 1.   Q2 pop_ is the place before the first element, push_ the one behind the
//   last; the queue is empty if push_ follows pop_.   Hence one place stays free, and one more at the end of a push.
//   Caveat constructor, destructor and shuffle() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <tuple>
#include <type_traits>
#include <utility>

namespace loam::structures {

template <class Element>
class alignas(4 * sizeof(std::int64_t)) RingQueue {  // its four words lie in one cache line
  static_assert(std::is_trivially_copyable_v<Element>);

 public:
  // setup: a plain access policy, which counts the array's block.
  template <class Access>
  RingQueue(Access& setup, std::int64_t capacity)
      : pop_(capacity - 1),
        capacity_(capacity),
        elements_(static_cast<Element*>(setup.allocate(static_cast<std::size_t>(capacity) * sizeof(Element)))) {}
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;
  ~RingQueue() { std::free(elements_); }

  template <class Access>
  bool is_empty(Access& access) const {
    const std::int64_t pop = access.read(pop_), push = access.read(push_), capacity = access.read(capacity_);
    return after(pop, capacity) == push;
  }

  template <class Access>
  void push(Access& access, Element element) {
    const std::int64_t pop = access.read(pop_);
    std::int64_t push = access.read(push_), capacity = access.read(capacity_);
    if (after(push, capacity) == pop) std::tie(push, capacity) = grow(access, pop, push, capacity);
    Element* const elements = access.read(elements_);
    access.write(elements[push], element);
    access.write(push_, after(push, capacity));
  }

  // False, and nothing is written, if it is empty.
  template <class Access>
  bool pop(Access& access, Element& out) {
    const std::int64_t pop = access.read(pop_), push = access.read(push_), capacity = access.read(capacity_);
    const std::int64_t next = after(pop, capacity);
    if (next == push) return false;
    Element* const elements = access.read(elements_);
    out = access.read(elements[next]);
    access.write(pop_, next);
    return true;
  }

  std::int64_t elements() const noexcept { return (push_ - after(pop_, capacity_) + capacity_) % capacity_; }

  // Swaps two places, each drawn by below(n), as often as there are elements n.
  template <class Below>
  void shuffle(Below&& below) {
    const std::int64_t first = after(pop_, capacity_), count = elements();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto a = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(count)));
      const auto b = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(count)));
      std::swap(elements_[(first + a) % capacity_], elements_[(first + b) % capacity_]);
    }
  }

  template <class Visit>  // visit(element), in order; plainly
  void for_each(Visit&& visit) const {
    for (std::int64_t at = after(pop_, capacity_); at != push_; at = after(at, capacity_)) visit(elements_[at]);
  }

  Verdict verify() const {
    const auto inside = [this](std::int64_t place) { return place >= 0 && place < capacity_; };
    if (!inside(pop_) || !inside(push_)) return {0, "Q1: places run from 0 to capacity - 1"};
    return {static_cast<std::size_t>(elements())};
  }

 private:
  static std::int64_t after(std::int64_t place, std::int64_t capacity) noexcept {
    return place + 1 == capacity ? 0 : place + 1;
  }

  // Moves all elements to the start of an array of twice the size. returns the new places of push_ and capacity_
  template <class Access>
  [[gnu::noinline]] std::pair<std::int64_t, std::int64_t> grow(Access& access, std::int64_t pop, std::int64_t push,
                                                               std::int64_t capacity) {
    const std::int64_t more = 2 * capacity;
    auto* const moved = static_cast<Element*>(access.allocate(static_cast<std::size_t>(more) * sizeof(Element)));
    Element* const elements = access.read(elements_);
    std::int64_t count = 0;
    for (std::int64_t at = after(pop, capacity); at != push; at = after(at, capacity))
      moved[count++] = access.read(elements[at]);
    access.release(elements);
    access.write(elements_, moved);
    access.write(pop_, more - 1);
    access.write(push_, count);
    access.write(capacity_, more);
    return {count, more};
  }

  std::int64_t pop_, push_ = 0, capacity_;
  Element* elements_;
};

}  // namespace loam::structures
