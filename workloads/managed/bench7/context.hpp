// What an operation of STMBench7 works with: access to objects, the roots, and random numbers of its own.
//   The random numbers begin anew in each attempt: the driver gives a copy of the thread's generator and keeps what the
//   attempt that committed has made of it.
#pragma once

#include "runtime/base/random.hpp"
#include "workloads/managed/bench7/sizes.hpp"

#include <cstdint>

namespace loam::workloads::managed::bench7 {

// A thread's handles of the roots.
struct Roots {
  Roots(gc::Mutator& mutator, Everything* all)
      : module(mutator, get(all->module)),
        atomic_by_id(mutator, get(all->atomic_by_id)),
        atomic_by_date(mutator, get(all->atomic_by_date)),
        documents(mutator, get(all->documents)),
        composites(mutator, get(all->composites)),
        bases(mutator, get(all->bases)),
        complexes(mutator, get(all->complexes)),
        atomic_ids(mutator, get(all->atomic_ids)),
        composite_ids(mutator, get(all->composite_ids)),
        base_ids(mutator, get(all->base_ids)),
        complex_ids(mutator, get(all->complex_ids)) {}

  gc::Local<Module> module;
  gc::Local<Map> atomic_by_id, atomic_by_date, documents, composites, bases, complexes;
  gc::Local<Pool> atomic_ids, composite_ids, base_ids, complex_ids;

 private:
  template <class T>
  static T* get(gc::Ref<T>& reference) noexcept {
    return static_cast<T*>(reference.slot().load(std::memory_order_relaxed));  // relaxed: it never changes
  }
};

struct Settings {
  Sizes sizes;
  bool arrays;  // texts are read and written by the character
};

template <class Access>
struct Context {
  Access& tx;
  Roots& roots;
  base::Random& random;
  const Settings& settings;

  gc::Mutator& mutator() const noexcept { return tx.mutator(); }
  // An identifier of a kind of which there were `objects` at the beginning. About one in twenty is free.
  std::uint64_t any_id(std::uint32_t objects) const noexcept { return 1 + random.below(Sizes::pool_of(objects)); }
  Number between(Number least, Number most) const noexcept {
    return least + static_cast<Number>(random.below(static_cast<std::uint32_t>(most - least + 1)));
  }
};

// An operation that failed has written nothing.
struct Outcome {
  std::int64_t result = 0;
  bool failed = false;
};
inline constexpr Outcome kFailed{0, true};

}  // namespace loam::workloads::managed::bench7
