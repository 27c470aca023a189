// Mutator: a thread's own part of a heap. Made in the thread that uses it; ends there, before the thread does. A thread
// may have several, of one heap or of several heaps.
//   Fast paths: allocate (a bump in a buffer of zeroed nursery), the write barrier (two compares), a safepoint (a load).
//   Invariants
//   M1 [next_, limit_) is zero.   M2 while its thread is safe, nobody but the collector touches a Mutator.
//   M3 an old object that refers to a young one has its remembered bit and is in the list of one Mutator. So is a large
//      object with references until the first collection after its birth: init() may store young ones into it.
#pragma once

#include "runtime/gc/object.hpp"
#include "runtime/gc/os_vector.hpp"
#include "runtime/gc/roots.hpp"
#include "runtime/gc/settings.hpp"
#include "runtime/gc/world.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace loam::gc {

class Heap;
class Collector;
struct Backend;

// What is to be finalized once it is dead.
struct Finalizable {
  Object* object;
  void (*finalize)(Object*);
};

// The functions of a thread's transactions that the collector calls. All are called while the world is stopped.
class LogVisitor {
 public:
  // Called before objects move. full: the old generation is collected, too; last: if it frees too little, the request
  // for memory will be refused.
  virtual void before_collection(bool full, bool last) = 0;
  // The objects that logs keep alive: chunks that lie in the heap, and old values.
  virtual void visit_strong(Collector& collector) = 0;
  // Called when all live objects are known: the other references of logs.
  virtual void visit_weak(Collector& collector) = 0;
  // The same two of a backend, which moves nothing.
  virtual void keep_strong(const Backend& backend) = 0;
  virtual void drop_dead(const Backend& backend) = 0;
  // Gives memory of logs outside of the heap that contains no entry back to the system. returns its size, which is
  // still charged to the heap
  virtual std::size_t give_back() noexcept = 0;
  virtual void verify() const = 0;
  // In the child of a fork, which has not the thread: undoes its transaction, and frees its logs.
  virtual void forget() noexcept = 0;

 protected:
  ~LogVisitor() = default;
};

class Mutator {
 public:
  explicit Mutator(Heap& heap);
  ~Mutator();
  Mutator(const Mutator&) = delete;
  Mutator& operator=(const Mutator&) = delete;

  // A new object, all zero but its header. May collect; throws OutOfMemory.
  template <class T>
  T* allocate() {
    static_assert(sizeof(T) < (std::size_t{16} << 10), "an object of fields is no large one");
    return static_cast<T*>(allocate_bytes(sizeof(T), kDescriptorOf<T>));
  }
  template <class A>
  A* allocate_array(std::size_t length) {
    constexpr std::size_t kElementBytes = sizeof(typename A::Field);
    if (length > (kMemoryMost - sizeof(Array)) / kElementBytes) [[unlikely]]
      refuse_array(length, kElementBytes);
    const std::size_t bytes = (sizeof(Array) + length * kElementBytes + 7) & ~std::size_t{7};
    auto* const array = static_cast<A*>(allocate_bytes(bytes, kDescriptorOf<A>));
    array->set_length(length);
    return array;
  }
  WeakReference* allocate_weak(const LocalBase& target);
  // finalize(object) is called by Heap::run_finalizers() once the object is dead; it lives until then. Whatever happens
  // to a transaction that makes it, its finalizer runs.
  template <class T>
  T* allocate_finalizable(void (*finalize)(Object*)) {
    return static_cast<T*>(allocate_finalizable(sizeof(T), kDescriptorOf<T>, finalize));
  }

  [[gnu::always_inline]] Object* allocate_bytes(std::size_t bytes, const Descriptor& descriptor) {
    std::byte* const start = next_;
    if (bytes > static_cast<std::size_t>(limit_ - start)) [[unlikely]]
      return allocate_slow(bytes, descriptor);
    next_ = start + bytes;
    auto* const object = reinterpret_cast<Object*>(start);
    object->word().store(reinterpret_cast<std::uintptr_t>(&descriptor), std::memory_order_relaxed);
    return object;
  }

  // After `value` was stored into a field of `holder`.
  [[gnu::always_inline]] void barrier(Object* holder, const Object* value) {
    if (is_young(value) && !is_young(holder)) [[unlikely]]
      remember(holder);
  }
  [[gnu::always_inline]] bool is_young(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - nursery_ < nursery_bytes_;
  }

  [[gnu::always_inline]] void safepoint() {
    if (world_.is_stop_requested()) [[unlikely]]
      wait_at_safepoint();
  }
  // Put it around code that may block: the world can be stopped meanwhile, so this code must not access objects, also
  // not by another Mutator of this thread for the same heap. One may be inside of another.
  class Native {
   public:
    explicit Native(Mutator& mutator) : mutator_(mutator) { mutator.world_.enter_native(mutator); }
    ~Native() { mutator_.world_.leave_native(mutator_); }
    Native(const Native&) = delete;
    Native& operator=(const Native&) = delete;

   private:
    Mutator& mutator_;
  };

  // Reads and writes without synchronisation of their own: for what one thread has, or a lock guards.
  template <class T, class C, class R>
  R* read(const Local<T>& object, Ref<R> C::* member) const noexcept {
    return static_cast<R*>((object.get()->*member).slot().load(std::memory_order_relaxed));
  }
  template <class T, class C, class V>
  V read(const Local<T>& object, Value<V> C::* member) const noexcept {
    return (object.get()->*member).slot().load(std::memory_order_relaxed);
  }
  template <class T, class C, class R>
  void write(const Local<T>& object, Ref<R> C::* member, R* value) {
    store(object.get(), object.get()->*member, value);
  }
  template <class T, class C, class V>
  void write(const Local<T>& object, Value<V> C::* member, std::type_identity_t<V> value) noexcept {
    (object.get()->*member).slot().store(value, std::memory_order_relaxed);
  }
  template <class R>
  R* read_at(const Local<RefArray<R>>& array, std::size_t index) const noexcept {
    return static_cast<R*>(array->at(index).slot().load(std::memory_order_relaxed));
  }
  template <class V>
  V read_at(const Local<ValueArray<V>>& array, std::size_t index) const noexcept {
    return array->at(index).slot().load(std::memory_order_relaxed);
  }
  template <class R>
  void write_at(const Local<RefArray<R>>& array, std::size_t index, std::type_identity_t<R>* value) {
    store(array.get(), array->at(index), value);
  }
  template <class V>
  void write_at(const Local<ValueArray<V>>& array, std::size_t index, std::type_identity_t<V> value) noexcept {
    array->at(index).slot().store(value, std::memory_order_relaxed);
  }
  template <class R>
  void store(Object* holder, Ref<R>& field, R* value) {
    field.slot().store(value, std::memory_order_relaxed);
    barrier(holder, value);
  }

  Heap& heap() const noexcept { return heap_; }
  World& world() const noexcept { return world_; }
  World::Member& member() noexcept { return member_; }
  const World::Member& member() const noexcept { return member_; }
  std::size_t nursery_bytes() const noexcept { return nursery_bytes_; }
  LocalBase*& newest_local() noexcept { return newest_local_; }
  void set_logs(LogVisitor* logs) noexcept { logs_ = logs; }
  LogVisitor* logs() const noexcept { return logs_; }
  // A chunk for a log: an object without references that the collector moves, but whose entries it leaves alone.
  Object* allocate_chunk(std::size_t bytes, const Descriptor& descriptor);
  void collect(bool full = true);

  // Of a transaction that may give its objects back: what was allocated from a mark on (runtime/gc/tx/nursery.hpp).
  struct Piece {
    std::byte *start, *end;
  };
  struct Mark {
    std::size_t buffers;  // kept since the outermost mark
    std::byte* next;
    std::uint64_t collections;
    std::size_t finalizable;  // made since the last collection
  };

 private:
  // Buffers and lists of a thread: its heap hands them out, a collection empties them while the world is stopped, and
  // TransactionNursery is the part of the thread's own transaction that takes them back.
  friend class Heap;
  friend class Collector;
  friend class TransactionNursery;

  [[noreturn, gnu::noinline, gnu::cold]] void refuse_array(std::size_t length, std::size_t element_bytes);
  [[gnu::noinline]] Object* allocate_slow(std::size_t bytes, const Descriptor& descriptor);
  Object* allocate_finalizable(std::size_t bytes, const Descriptor& descriptor, void (*finalize)(Object*));
  Object* allocate_elsewhere(std::size_t bytes, const Descriptor& descriptor);
  // An object that the abort of an attempt does not give back.
  Object* allocate_to_stay(std::size_t bytes, const Descriptor& descriptor);
  void collect_for_tests();
  [[gnu::noinline]] void remember(Object* holder);
  [[gnu::noinline]] void wait_at_safepoint();
  void give_up_buffer() noexcept;

  std::byte *next_ = nullptr, *limit_ = nullptr;
  std::uintptr_t nursery_;
  std::size_t nursery_bytes_;
  LocalBase* newest_local_ = nullptr;
  World& world_;
  Heap& heap_;
  LogVisitor* logs_ = nullptr;
  std::byte* buffer_ = nullptr;  // start of the current one
  OsVector<Object*> remembered_;
  OsVector<Finalizable> finalizable_;  // made since the last collection
  bool keeps_buffers_ = false;
  OsVector<Piece> kept_buffers_;  // full ones, while a mark is set
  unsigned until_collection_ = 0;
  std::size_t bytes_elsewhere_ = 0;  // of a backend, which hands out no buffers
  World::Member member_;
};

template <class T>
Local<T>::Local(Mutator& mutator, T* object) noexcept : LocalBase(mutator.newest_local(), object) {}

}  // namespace loam::gc
