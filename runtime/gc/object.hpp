// object: the layout of an object in the managed heap: a header of two words, then fields or elements.
//
//   word 0   address of the descriptor | bits.   bit 0: forwarded, and the rest is the new address (only while the world
//            is stopped)   bit 1: remembered (an old object that may refer to young ones)   bit 2: marked (only before
//            a collection, while duplicates are dropped from logs)
//   word 1   the transactional word (runtime/gc/tx/ownership.hpp); 0 in a new object
//
//   A type derives from Object, has fields Ref<T> and Value<T>, and says so in a static function:
//     struct Node : gc::Object {
//       gc::Ref<Node> next;
//       gc::Value<double> number;
//       static gc::Descriptor describe() { return gc::describe<Node>("node", &Node::next); }   // its references
//     };
//   Invariants
//   O1 an object's size follows from its descriptor and, of an array, its length: spaces can be walked.
//   O2 a reference is null or the start of an object.   O3 sizes are multiples of 8 bytes.
#pragma once

#include "runtime/base/check.hpp"

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace loam::gc {

class Object;

enum class Shape : std::uint32_t { fields, references, values, weak, chunk };

// alignas: the low bits of its address are free in word 0.
struct alignas(16) Descriptor {
  static constexpr std::uint32_t kMagic = 0x6c6f616d;
  static constexpr std::size_t kReferencesMax = 16;

  std::uint32_t magic = kMagic;  // what is no descriptor is found by it
  Shape shape = Shape::fields;
  std::uint32_t bytes = 0;          // of an object, without elements
  std::uint32_t element_bytes = 0;  // of an array
  std::uint32_t references = 0;
  std::array<std::uint32_t, kReferencesMax> offsets{};  // of the references
  std::string_view name;
};

class Object {
 public:
  static constexpr std::uintptr_t kForwarded = 1, kRemembered = 2, kMarked = 4, kBits = 15;

  const Descriptor& descriptor() const noexcept {
    return *reinterpret_cast<const Descriptor*>(word().load(std::memory_order_relaxed) & ~kBits);
  }
  // relaxed accesses of word 0: what else an object holds is ordered by the transactional word, a lock, or the stop.
  std::atomic_ref<std::uintptr_t> word() const noexcept { return std::atomic_ref<std::uintptr_t>(word_); }
  std::atomic_ref<std::uint64_t> stm() const noexcept { return std::atomic_ref<std::uint64_t>(stm_); }

  bool has(std::uintptr_t bit) const noexcept { return (word().load(std::memory_order_relaxed) & bit) != 0; }

 private:
  mutable std::uintptr_t word_;
  mutable std::uint64_t stm_;
};
static_assert(sizeof(Object) == 16);

// A reference in an object. Only the access policies (Mutator, Transaction) and the collector touch it.
template <class T>
class Ref {
 public:
  using Target = T;

  std::atomic_ref<Object*> slot() const noexcept { return std::atomic_ref<Object*>(raw_); }
  // Of a new object that no other thread can reach yet, before its thread's next allocation: no barrier.
  void init(T* target) noexcept { raw_ = target; }

 private:
  mutable Object* raw_;
};

// Anything else in an object. relaxed or acquire accesses of it never tear.
template <class T>
class Value {
  static_assert(std::is_trivially_copyable_v<T> &&
                    (sizeof(T) == 8 || sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1),
                "a value is read and written at once");

 public:
  using Held = T;

  std::atomic_ref<T> slot() const noexcept { return std::atomic_ref<T>(raw_); }
  void init(T value) noexcept { raw_ = value; }

 private:
  alignas(sizeof(T)) mutable T raw_;
};

// Elements follow the length. T: a type of objects for references, or of a value.
class Array : public Object {
 public:
  std::size_t length() const noexcept { return length_; }
  void set_length(std::size_t length) noexcept { length_ = length; }

 protected:
  template <class Field>
  Field& element(std::size_t index) noexcept {
    LOAM_ASSERT(index < length_, "element {} of an array of {}", index, length_);
    return reinterpret_cast<Field*>(this + 1)[index];
  }

 private:
  std::size_t length_;
};

template <class T>
class RefArray : public Array {
 public:
  using Field = Ref<T>;
  // at<Field>(): also with the type of the elements, and with no other one
  template <std::same_as<Field> Element = Field>
  Element& at(std::size_t index) noexcept {
    return element<Element>(index);
  }
  static Descriptor describe() {
    return {.shape = Shape::references, .bytes = sizeof(Array), .element_bytes = sizeof(Field), .name = "references"};
  }
};
template <class T>
class ValueArray : public Array {
 public:
  using Field = Value<T>;
  template <std::same_as<Field> Element = Field>
  Element& at(std::size_t index) noexcept {
    return element<Element>(index);
  }
  static Descriptor describe() {
    return {.shape = Shape::values, .bytes = sizeof(Array), .element_bytes = sizeof(Field), .name = "values"};
  }
};

// Where a field lies in an object.
template <class T, class Field>
std::uint32_t offset_of(Field T::* member) noexcept {
  alignas(T) static const std::byte storage[sizeof(T)] = {};
  const auto& object = reinterpret_cast<const T&>(storage);
  return static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(&(object.*member)) - storage);
}

// references: pointers to all members that are Ref
template <class T, class... References>
Descriptor describe(std::string_view name, References... references) {
  static_assert(std::derived_from<T, Object> && sizeof(T) % 8 == 0 && std::is_trivially_destructible_v<T>);
  static_assert(sizeof...(References) <= Descriptor::kReferencesMax);
  return {.bytes = sizeof(T), .references = sizeof...(References), .offsets = {offset_of(references)...}, .name = name};
}

template <class T>
inline const Descriptor kDescriptorOf = T::describe();

inline std::size_t bytes_of(const Object& object) noexcept {
  const Descriptor& descriptor = object.descriptor();
  std::size_t bytes = descriptor.bytes;
  if (descriptor.element_bytes != 0) bytes += descriptor.element_bytes * static_cast<const Array&>(object).length();
  return (bytes + 7) & ~std::size_t{7};
}

inline bool has_references(const Descriptor& descriptor) noexcept {
  return descriptor.shape == Shape::references || (descriptor.shape == Shape::fields && descriptor.references != 0);
}

// Calls visit(Object*& slot) for each strong reference of an object, while the world is stopped or nobody else has it.
template <class Visit>
void for_each_reference(Object& object, Visit&& visit) {
  const Descriptor& descriptor = object.descriptor();
  auto* const base = reinterpret_cast<std::byte*>(&object);
  if (descriptor.shape == Shape::fields) {
    for (std::uint32_t i = 0; i < descriptor.references; ++i)
      visit(*reinterpret_cast<Object**>(base + descriptor.offsets[i]));
  } else if (descriptor.shape == Shape::references) {
    auto** const elements = reinterpret_cast<Object**>(base + descriptor.bytes);
    const std::size_t length = static_cast<Array&>(object).length();
    for (std::size_t i = 0; i < length; ++i) visit(elements[i]);
  }
}

// A weak reference: it becomes null when its object is dead. Its target is set when it is made.
class WeakReference : public Object {
 public:
  Object* target() const noexcept { return target_; }
  Object*& target_slot() noexcept { return target_; }
  static Descriptor describe() {
    return {.shape = Shape::weak, .bytes = sizeof(WeakReference), .name = "weak reference"};
  }

 private:
  Object* target_;
};

}  // namespace loam::gc
