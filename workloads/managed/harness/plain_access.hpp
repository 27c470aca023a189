// PlainAccess: the interface of gc::Transaction without transactions, for one thread, private data, or under a lock.
#pragma once

#include "runtime/gc/gc.hpp"

#include <cstddef>
#include <type_traits>

namespace loam::workloads::managed {

class PlainAccess {
 public:
  explicit PlainAccess(gc::Mutator& mutator) noexcept : mutator_(mutator) {}

  // relaxed, everywhere: who may read is decided by a lock, or there is one thread.
  template <class T, class C, class R>
  R* read(const gc::Local<T>& object, gc::Ref<R> C::* member) const noexcept {
    return mutator_.read(object, member);
  }
  template <class T, class C, class V>
  V read(const gc::Local<T>& object, gc::Value<V> C::* member) const noexcept {
    return mutator_.read(object, member);
  }
  template <class T, class C, class R>
  void write(const gc::Local<T>& object, gc::Ref<R> C::* member, const gc::Local<R>& value) {
    mutator_.write(object, member, value.get());
  }
  template <class T, class C, class R>
  void write(const gc::Local<T>& object, gc::Ref<R> C::* member, std::nullptr_t) {
    mutator_.write(object, member, static_cast<R*>(nullptr));
  }
  template <class T, class C, class V>
  void write(const gc::Local<T>& object, gc::Value<V> C::* member, std::type_identity_t<V> value) noexcept {
    mutator_.write(object, member, value);
  }
  template <class R>
  R* read_at(const gc::Local<gc::RefArray<R>>& array, std::size_t index) const noexcept {
    return static_cast<R*>(array->template at<gc::Ref<R>>(index).slot().load(std::memory_order_relaxed));
  }
  template <class V>
  V read_at(const gc::Local<gc::ValueArray<V>>& array, std::size_t index) const noexcept {
    return array->template at<gc::Value<V>>(index).slot().load(std::memory_order_relaxed);
  }
  template <class R>
  void write_at(const gc::Local<gc::RefArray<R>>& array, std::size_t index, const gc::Local<R>& value) {
    mutator_.store(array.get(), array->template at<gc::Ref<R>>(index), value.get());
  }
  template <class R>
  void write_at(const gc::Local<gc::RefArray<R>>& array, std::size_t index, std::nullptr_t) {
    mutator_.store(array.get(), array->template at<gc::Ref<R>>(index), static_cast<R*>(nullptr));
  }
  template <class V>
  void write_at(const gc::Local<gc::ValueArray<V>>& array, std::size_t index, std::type_identity_t<V> value) noexcept {
    array->template at<gc::Value<V>>(index).slot().store(value, std::memory_order_relaxed);
  }
  // What only counts as read, without a value.
  void enlist_read(const gc::LocalBase&) const noexcept {}

  template <class T>
  T* create() {
    return mutator_.allocate<T>();
  }
  template <class A>
  A* create_array(std::size_t length) {
    return mutator_.allocate_array<A>(length);
  }
  gc::Mutator& mutator() noexcept { return mutator_; }
  void safepoint() { mutator_.safepoint(); }

 private:
  gc::Mutator& mutator_;
};

}  // namespace loam::workloads::managed
