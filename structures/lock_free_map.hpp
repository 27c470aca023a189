// LockFreeMap: a map of numbers in a fixed number of buckets, without a lock: a bucket is a sorted list.
//   Source   Michael: "High performance dynamic lock-free hash tables and list-based sets", SPAA 2002.
//   How      A thread that removes a pair first marks the link of its node, in the lowest bit: from then on no thread
//            can link a node behind it. Then the remover, or any thread that walks past it, unlinks the node and hands
//            it to the reclaimer.
//   Reclaimer  one that protects a whole walk (by_epochs.hpp); hazard pointers would need a third place, and a check
//            for every node.
//   Guarantees  linearizable; lock-free, as far as the allocator is; find() never waits and writes nothing.
//   Cost     alone a compare-and-swap to insert, two to remove.   When not: it does not grow.
//   Invariants  LM1 in a chain keys rise.   LM2 a marked link does not change any more.
//   Orders
//     lfm.A  links: release when a node is linked, acquire when they are followed.  Without it a walk could read the key of
//            a node as it was before.
//   Caveat constructor, destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "runtime/base/bits.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/points.hpp"
#include "structures/plain_access.hpp"
#include "structures/verdict.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace loam::structures {

template <class Reclaimer>
class LockFreeMap {
 public:
  using Key = std::int64_t;
  using Value = std::int64_t;

  // bit 0: the node that holds this link is removed   the others: the address of the next node
  using Link = std::uintptr_t;
  struct Node {
    Key key;
    Value value;
    std::atomic<Link> next;
  };
  static_assert(alignof(Node) > 1);

  // buckets: a power of two
  explicit LockFreeMap(std::size_t buckets)
      : mask_(buckets - 1), heads_(static_cast<std::atomic<Link>*>(std::malloc(buckets * sizeof(std::atomic<Link>)))) {
    LOAM_CHECK(std::has_single_bit(buckets), "{} buckets: no power of two", buckets);
    if (heads_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i <= mask_; ++i) ::new (static_cast<void*>(&heads_[i])) std::atomic<Link>(0);
  }
  LockFreeMap(const LockFreeMap&) = delete;
  LockFreeMap& operator=(const LockFreeMap&) = delete;
  ~LockFreeMap() {
    for (std::size_t i = 0; i <= mask_; ++i)
      for (Link link = heads_[i].load(std::memory_order_relaxed), next; link != 0; link = next) {  // relaxed: alone
        next = node_of(link)->next.load(std::memory_order_relaxed) & ~kRemoved;
        std::free(node_of(link));
      }
    std::free(heads_);
  }

  // False, and `value` is not changed, if the key is absent.
  bool find(Key key, Value& value) const {
    const typename Reclaimer::Section section;
    Link link = head(key).load(std::memory_order_acquire);  // lfm.A
    while (link != 0) {
      const Node* const node = node_of(link);
      const Link next = node->next.load(std::memory_order_acquire);  // lfm.A
      if (node->key >= key) {
        if (node->key != key || (next & kRemoved) != 0) return false;
        value = node->value;
        return true;
      }
      link = next & ~kRemoved;
    }
    return false;
  }

  // False, and nothing is changed, if the key is present.
  bool insert(Key key, Value value) {
    Node* const node = PlainAccess().create<Node>(key, value, Link{0});
    {
      typename Reclaimer::Section section;
      for (;;) {
        Place place = search(section, key);
        if (place.holds(key)) break;
        node->next.store(place.link, std::memory_order_relaxed);  // relaxed: published by the link to it
        LOAM_POINT("lock-free map: before the link");
        // relaxed where it fails: the chain is searched anew.
        if (place.before->compare_exchange_strong(place.link, link_to(node), std::memory_order_release,
                                                  std::memory_order_relaxed))  // lfm.A
          return true;
      }
    }
    PlainAccess().destroy(node);
    return false;
  }

  // False, and `value` is not changed, if the key is absent.
  bool remove(Key key, Value& value) {
    typename Reclaimer::Section section;
    for (;;) {
      Place place = search(section, key);
      if (!place.holds(key)) return false;
      Node* const node = node_of(place.link);
      Link next = node->next.load(std::memory_order_acquire);  // lfm.A
      if ((next & kRemoved) != 0) continue;
      // LM2.  relaxed, both: what is linked does not change; who unlinks it passes on what lfm.A has shown it.
      if (!node->next.compare_exchange_strong(next, next | kRemoved, std::memory_order_relaxed)) continue;
      value = node->value;
      LOAM_POINT("lock-free map: between mark and unlinking");
      // relaxed where it fails: the chain is searched anew.
      if (place.before->compare_exchange_strong(place.link, next, std::memory_order_release,
                                                std::memory_order_relaxed))  // lfm.A
        section.retire(node);
      else
        search(section, key);  // unlinks it
      return true;
    }
  }

  // M1 every key is in its own bucket.   LM1.   M3 at rest no removed node is linked.
  Verdict verify() const {
    Verdict verdict;
    for (std::size_t i = 0; i <= mask_; ++i) {
      const Node* before = nullptr;
      // relaxed, all: alone
      for (Link link = heads_[i].load(std::memory_order_relaxed); link != 0;) {
        const Node* const node = node_of(link);
        link = node->next.load(std::memory_order_relaxed);
        if (bucket(node->key) != i) return {verdict.elements, "M1: every key is in its own bucket"};
        if (before != nullptr && before->key >= node->key) return {verdict.elements, "LM1: in a chain keys rise"};
        if ((link & kRemoved) != 0) return {verdict.elements, "M3: at rest no removed node is linked"};
        before = node;
        ++verdict.elements;
      }
    }
    return verdict;
  }

  template <class Visit>  // visit(key, value), in no order
  void for_each(Visit&& visit) const {
    for (std::size_t i = 0; i <= mask_; ++i)
      // relaxed: alone
      for (Link link = heads_[i].load(std::memory_order_relaxed); link != 0;
           link = node_of(link)->next.load(std::memory_order_relaxed))
        visit(node_of(link)->key, node_of(link)->value);
  }

 private:
  static constexpr Link kRemoved = 1;

  // The link before which smaller keys end, and what it was: the first node whose key is not smaller, or nothing.
  struct Place {
    std::atomic<Link>* before;
    Link link;

    bool holds(Key key) const noexcept { return link != 0 && node_of(link)->key == key; }
  };

  // Unlinks what is removed on its way.
  template <class Section>
  Place search(Section& section, Key key) {
    for (;;) {
      Place place{&head(key), head(key).load(std::memory_order_acquire)};  // lfm.A
      bool lost = false;
      while (place.link != 0 && !lost) {
        Node* const node = node_of(place.link);
        const Link next = node->next.load(std::memory_order_acquire);  // lfm.A
        if ((next & kRemoved) != 0) {
          // Fails where the link's own node was removed, or somebody else was faster: the way here is gone.
          // relaxed where it fails: the chain is searched anew.
          if (place.before->compare_exchange_strong(place.link, next & ~kRemoved, std::memory_order_release,
                                                    std::memory_order_relaxed)) {  // lfm.A
            section.retire(node);
            place.link = next & ~kRemoved;
          } else {
            lost = true;
          }
        } else if (node->key >= key) {
          return place;
        } else {
          place = {&node->next, next};
        }
      }
      if (!lost) return place;
    }
  }

  static Node* node_of(Link link) noexcept { return reinterpret_cast<Node*>(link); }
  static Link link_to(const Node* node) noexcept { return reinterpret_cast<Link>(node); }

  std::size_t bucket(Key key) const noexcept { return base::mix(static_cast<std::uint64_t>(key)) & mask_; }
  std::atomic<Link>& head(Key key) const noexcept { return heads_[bucket(key)]; }

  const std::size_t mask_;
  std::atomic<Link>* const heads_;
};

}  // namespace loam::structures
