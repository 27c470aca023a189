// CAccess: the access policy of a program in C: each access is loam_tx_read_... or loam_tx_write_... of loam/tm.h, a call
// unless LOAM_TM_ALGORITHM is defined before that header.
#pragma once

#include "include/loam/tm.h"
#include "runtime/base/check.hpp"
#include "runtime/tm/access.hpp"

#include <bit>
#include <cstddef>
#include <new>
#include <type_traits>

namespace loam::workloads {

class CAccess {
 public:
  explicit CAccess(loam_tx* tx) noexcept : tx_(tx) {}

  template <class Field>
  [[gnu::always_inline]] Field read(const Field& field) const noexcept {
    static_assert(std::is_trivially_copyable_v<Field>);
    if constexpr (!tm::kFitsWord<Field>) {
      alignas(Field) std::byte bytes[sizeof(Field)];
      loam_tx_read_bytes(tx_, bytes, &field, sizeof bytes);
      return *std::launder(reinterpret_cast<Field*>(bytes));
    } else if constexpr (sizeof(Field) == 8) {
      return std::bit_cast<Field>(loam_tx_read_u64(tx_, &field));
    } else if constexpr (sizeof(Field) == 4) {
      return std::bit_cast<Field>(loam_tx_read_u32(tx_, &field));
    } else if constexpr (sizeof(Field) == 2) {
      return std::bit_cast<Field>(loam_tx_read_u16(tx_, &field));
    } else {
      return std::bit_cast<Field>(loam_tx_read_u8(tx_, &field));
    }
  }

  template <class Field>
  [[gnu::always_inline]] void write(Field& field, std::type_identity_t<Field> value) const noexcept {
    static_assert(std::is_trivially_copyable_v<Field>);
    using tm::UnsignedOf;
    if constexpr (!tm::kFitsWord<Field>)
      loam_tx_write_bytes(tx_, &field, &value, sizeof value);
    else if constexpr (sizeof(Field) == 8)
      loam_tx_write_u64(tx_, &field, std::bit_cast<UnsignedOf<8>::type>(value));
    else if constexpr (sizeof(Field) == 4)
      loam_tx_write_u32(tx_, &field, std::bit_cast<UnsignedOf<4>::type>(value));
    else if constexpr (sizeof(Field) == 2)
      loam_tx_write_u16(tx_, &field, std::bit_cast<UnsignedOf<2>::type>(value));
    else
      loam_tx_write_u8(tx_, &field, std::bit_cast<UnsignedOf<1>::type>(value));
  }

  // Plain stores into the new block: nobody else can see it yet.
  template <class Node, class... Values>
  Node* create(Values... values) const noexcept {
    return ::new (allocate(sizeof(Node))) Node{values...};
  }
  template <class Node>
  void destroy(Node* node) const noexcept {
    static_assert(std::is_trivially_destructible_v<Node>);
    loam_tx_free(tx_, node);
  }
  void* allocate(std::size_t bytes) const noexcept {
    void* const block = loam_tx_malloc(tx_, bytes);
    LOAM_CHECK(block != nullptr, "loam_tx_malloc({}) failed", bytes);
    return block;
  }
  void release(void* block) const noexcept { loam_tx_free(tx_, block); }

 private:
  loam_tx* tx_;
};

}  // namespace loam::workloads
