// Typed roots: the only way to keep an object while the world may stop.
//   Local   on the stack of a thread that has a Mutator.   Cost  three stores, two loads, a comparison.
//           They nest as blocks do, with one exception: a temporary Local in the initialiser of another one, as in
//           Local<T> a(mutator, Local<T>(mutator, b).get()), ends before the newer one and leaves the list's middle.
//   Global  anywhere, of any lifetime.   Cost  a lock when it is made and when it ends.
//   Caveat: a plain pointer from a root is valid until the next allocation, enlistment or safepoint of this thread.
//   Checked builds end with a message where a Local is used after its scope.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/gc/object.hpp"

#include <cstdint>

namespace loam::gc {

class Mutator;
class Heap;

class LocalBase {
 public:
  LocalBase(const LocalBase&) = delete;
  LocalBase& operator=(const LocalBase&) = delete;

  Object* object() const noexcept {
    LOAM_ASSERT(object_ != dead(), "a Local is used after its scope");
    return object_;
  }
  Object*& slot() noexcept { return object_; }
  LocalBase* previous() const noexcept { return previous_; }

 protected:
  LocalBase(LocalBase*& newest, Object* object) noexcept : object_(object), previous_(newest), newest_(newest) {
    newest = this;
  }
  ~LocalBase() {
    if (newest_ == this) [[likely]]
      newest_ = previous_;
    else
      leave_middle();
#ifdef LOAM_CHECKED
    *const_cast<Object* volatile*>(&object_) = dead();
#endif
  }
  void set(Object* object) noexcept {
    LOAM_ASSERT(object_ != dead(), "a Local is used after its scope");
    object_ = object;
  }

 private:
  [[gnu::noinline, gnu::cold]] void leave_middle() noexcept {
    LocalBase* newer = newest_;
    while (newer->previous_ != this) {
      newer = newer->previous_;
      LOAM_CHECK(newer != nullptr, "a Local ends that is no root: an abort has left its scope");
    }
    newer->previous_ = previous_;
  }
  static Object* dead() noexcept { return reinterpret_cast<Object*>(std::uintptr_t{0xdead}); }

  Object* object_;
  LocalBase* previous_;
  LocalBase*& newest_;
};

template <class T>
class Local : public LocalBase {
 public:
  explicit Local(Mutator& mutator, T* object = nullptr) noexcept;
  Local(Mutator& mutator, const Local& other) noexcept : Local(mutator, other.get()) {}

  T* get() const noexcept { return static_cast<T*>(object()); }
  T* operator->() const noexcept { return get(); }
  explicit operator bool() const noexcept { return object() != nullptr; }
  Local& operator=(T* object) noexcept {
    set(object);
    return *this;
  }
  Local& operator=(const Local& other) noexcept {
    set(other.object());
    return *this;
  }
};

class GlobalBase {
 public:
  GlobalBase(const GlobalBase&) = delete;
  GlobalBase& operator=(const GlobalBase&) = delete;
  Object*& slot() noexcept { return object_; }
  GlobalBase* next() const noexcept { return next_; }
  // The list of a heap, with its lock.
  void join(GlobalBase*& first) noexcept {
    next_ = first;
    if (first != nullptr) first->previous_ = this;
    first = this;
  }
  void leave(GlobalBase*& first) noexcept {
    (previous_ != nullptr ? previous_->next_ : first) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

 protected:
  explicit GlobalBase(Heap& heap) noexcept;
  ~GlobalBase();
  Object* object_ = nullptr;

 private:
  Heap& heap_;
  GlobalBase *next_ = nullptr, *previous_ = nullptr;
};

// Not part of a transaction: a store to it is not undone by an abort. Set it outside of transactions.
template <class T>
class Global : public GlobalBase {
 public:
  explicit Global(Heap& heap) noexcept : GlobalBase(heap) {}
  T* get() const noexcept { return static_cast<T*>(object_); }
  void set(T* object) noexcept { object_ = object; }
};

}  // namespace loam::gc
