// ChainedMap: a map in a fixed number of buckets; a bucket is a sorted list of pairs.
//   Source the hash table of the STAMP applications (Cao Minh et al., IISWC 2008), by its description.
//   Cost   O(length of the chain); an insertion walks it twice, and takes two blocks: the pair, and the list's node.
//   A bucket counts its own pairs; there is no count of all, which every insertion would write.
//   Keys::hash(key) and Keys::compare(a, b) are called inside of transactions, and read only data that transactions do
//   not change.
//   When not: HashSet needs one block per key and reads less.
//   Caveat constructor, destructor, verify() and for_each() touch memory plainly; no other thread may be inside.
#pragma once

#include "structures/list.hpp"
#include "structures/verdict.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace loam::structures {

template <class Key, class Value, class Keys>
class ChainedMap {
 public:
  struct Pair {
    Key key;
    Value value;
  };
  struct ByKey {
    static int compare(const Pair* a, const Pair* b) noexcept { return Keys::compare(a->key, b->key); }
    static int compare(const Pair* a, const Key& b) noexcept { return Keys::compare(a->key, b); }
  };
  using Chain = List<Pair*, ByKey>;

  explicit ChainedMap(std::size_t buckets)
      : count_(buckets), buckets_(static_cast<Chain*>(std::malloc(buckets * sizeof(Chain)))) {
    if (buckets_ == nullptr) throw std::bad_alloc();
    for (std::size_t i = 0; i < count_; ++i) ::new (&buckets_[i]) Chain;
  }
  ChainedMap(const ChainedMap&) = delete;
  ChainedMap& operator=(const ChainedMap&) = delete;
  ~ChainedMap() {
    for (std::size_t i = 0; i < count_; ++i) {
      buckets_[i].for_each([](Pair* pair) { std::free(pair); });
      buckets_[i].free_nodes();
    }
    std::free(buckets_);
  }

  // The value of a key, or null.
  template <class Access>
  const Value* find(Access& access, const Key& key) const {
    const auto* const pair = chain(key).find(access, key);
    return pair == nullptr ? nullptr : &(*pair)->value;
  }

  // False, and nothing is written, if the key is present.
  template <class Access>
  bool insert(Access& access, const Key& key, const Value& value) {
    auto& list = chain(key);
    if (list.find(access, key) != nullptr) return false;
    list.insert(access, access.template create<Pair>(key, value));
    return true;
  }

  // False, and nothing is written, if the key is absent.
  template <class Access>
  bool remove(Access& access, const Key& key) {
    auto& list = chain(key);
    auto* const* const pair = list.find(access, key);
    if (pair == nullptr) return false;
    Pair* const gone = *pair;
    list.remove(access, key);
    access.destroy(gone);
    return true;
  }

  std::size_t buckets() const noexcept { return count_; }
  // Of one bucket; plainly.
  std::size_t elements_in(std::size_t bucket) const noexcept { return buckets_[bucket].elements(); }
  template <class Visit>  // visit(key, value) of one bucket, in order
  void for_each_in(std::size_t bucket, Visit&& visit) const {
    buckets_[bucket].for_each([&](const Pair* pair) { visit(pair->key, pair->value); });
  }

  // C1 every chain holds (list.hpp).   C2 a key is in its own bucket.   C3 no key is there twice.
  Verdict verify() const {
    Verdict verdict;
    for (std::size_t i = 0; i < count_ && verdict.holds(); ++i) {
      const Verdict of_chain = buckets_[i].verify();
      verdict.elements += of_chain.elements;
      if (!of_chain.holds()) verdict.broken = of_chain.broken;
      const Pair* before = nullptr;
      buckets_[i].for_each([&](const Pair* pair) {
        if (&chain(pair->key) != &buckets_[i]) verdict.broken = "C2: a key is in its own bucket";
        if (before != nullptr && Keys::compare(before->key, pair->key) == 0)
          verdict.broken = "C3: no key is there twice";
        before = pair;
      });
    }
    return verdict;
  }

  template <class Visit>  // visit(address, bytes) for the blocks that are no nodes or pairs
  void for_each_fixed_block(Visit&& visit) const {
    visit(static_cast<const void*>(buckets_), count_ * sizeof(Chain));
  }

 private:
  Chain& chain(const Key& key) const { return buckets_[Keys::hash(key) % count_]; }

  const std::size_t count_;
  Chain* const buckets_;
};

}  // namespace loam::structures
