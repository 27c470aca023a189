// access: values of any trivially copyable type over an algorithm's word accesses.
//   An algorithm's transaction derives from ReadAccess or UpdateAccess and provides
//     load<U>(const U*)            U an unsigned integer of 1, 2, 4 or 8 bytes, naturally aligned
//     store(Word*, value, mask)    the bits of `mask` within an aligned word
//   kBlame: whether this is the instantiation for blame runs, whose accesses report their source lines to explain.hpp.
//   A value that fits one aligned word is one access; a larger or unaligned one is read and written word by word, and
//   is still one value: the transaction is atomic.
#pragma once

#include "runtime/tm/attempts/lifecycle.hpp"
#include "runtime/tm/attempts/memory.hpp"
#include "runtime/tm/blame/explain.hpp"
#include "runtime/tm/types.hpp"

#include <bit>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace loam::tm {

static_assert(std::endian::native == std::endian::little, "sub-word masks assume little endian");

template <std::size_t kBytes>
struct UnsignedOf {};
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};

template <class T>
inline constexpr bool kFitsWord = std::has_single_bit(sizeof(T)) && sizeof(T) <= kWordBytes && alignof(T) >= sizeof(T);

inline Word* word_of(const Word* address) noexcept { return const_cast<Word*>(address); }
inline Word* word_of(const void* address) noexcept {
  return reinterpret_cast<Word*>(reinterpret_cast<std::uintptr_t>(address) & ~(kWordBytes - 1));
}
inline unsigned bit_in_word(const Word*) noexcept { return 0; }
inline unsigned bit_in_word(const void* address) noexcept {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address) % kWordBytes) * 8;
}
// A mask of `bytes` bytes starting at `bit`.
constexpr Word mask_of(std::size_t bytes, unsigned bit) noexcept {
  return (bytes >= kWordBytes ? ~Word{0} : (Word{1} << (bytes * 8)) - 1) << bit;
}

// Calls part(word, offset in the value, first byte in the word, bytes) for each aligned word that [address, +bytes)
// meets.
template <class Part>
void for_each_word(const void* address, std::size_t bytes, Part&& part) {
  for (std::size_t done = 0; done < bytes;) {
    const auto at = reinterpret_cast<std::uintptr_t>(address) + done;
    const std::size_t first = at % kWordBytes;
    const std::size_t count = std::min(bytes - done, kWordBytes - first);
    part(word_of(reinterpret_cast<const void*>(at)), done, first, count);
    done += count;
  }
}

template <class Tx, bool kBlame = false>
class ReadAccess {
 public:
  static constexpr bool kTellsWhere = kBlame;

  // The value of a shared field.
  template <class T>
  [[gnu::always_inline]] T read(const T& field) {
    static_assert(std::is_trivially_copyable_v<T>, "a transactional field is copied as words");
    if constexpr (kFitsWord<T>) {
      if constexpr (kBlame) explain::read(self().descriptor(), &field);
      using U = typename UnsignedOf<sizeof(T)>::type;
      return std::bit_cast<T>(self().template load<U>(reinterpret_cast<const U*>(&field)));
    } else {
      alignas(T) std::byte bytes[sizeof(T)];
      for_each_word(&field, sizeof(T), [&](Word* word, std::size_t offset, std::size_t first, std::size_t count) {
        if constexpr (kBlame) explain::read(self().descriptor(), word);
        // In naturally aligned pieces: the rest of a word need not belong to the object.
        const auto* const from = reinterpret_cast<const std::byte*>(word) + first;
        const auto piece = [&]<class U>(std::type_identity<U>, std::size_t done) {
          const U value = self().template load<U>(reinterpret_cast<const U*>(from + done));
          std::memcpy(bytes + offset + done, &value, sizeof value);
        };
        if constexpr (sizeof(T) >= kWordBytes)
          if (count == kWordBytes) return piece(std::type_identity<Word>{}, 0);
        for (std::size_t done = 0; done < count;) {
          const std::size_t left = count - done, at = first + done;
          const std::size_t size = at % 4 == 0 && left >= 4 ? 4 : at % 2 == 0 && left >= 2 ? 2 : 1;
          if constexpr (sizeof(T) >= 4)
            if (size == 4) piece(std::type_identity<std::uint32_t>{}, done);
          if constexpr (sizeof(T) >= 2)
            if (size == 2) piece(std::type_identity<std::uint16_t>{}, done);
          if (size == 1) piece(std::type_identity<std::uint8_t>{}, done);
          done += size;
        }
      });
      return *std::launder(reinterpret_cast<T*>(bytes));
    }
  }

  // For data that this transaction unlinks, or finds unlinked: plain code may use it in any way after the commit, also
  // unmap it or free it plainly, in every mode of Config::privatization. The commit waits until no attempt runs that
  // ran beside it. object names the data for the reader of the code
  template <class T>
  void privatize([[maybe_unused]] const T* object) {
    lifecycle::privatize(self().descriptor());
  }

 private:
  Tx& self() noexcept { return static_cast<Tx&>(*this); }
};

template <class Tx, bool kBlame>
class UpdateAccess : public ReadAccess<Tx, kBlame> {
 public:
  // Gives a shared field a new value, visible to others at commit.
  template <class T>
  [[gnu::always_inline]] void write(T& field, std::type_identity_t<T> value) {
    static_assert(std::is_trivially_copyable_v<T>, "a transactional field is copied as words");
    if constexpr (kFitsWord<T>) {
      if constexpr (kBlame) explain::write(self().descriptor(), &field);
      using U = typename UnsignedOf<sizeof(T)>::type;
      if constexpr (sizeof(T) == kWordBytes) {
        self().store(reinterpret_cast<Word*>(&field), std::bit_cast<U>(value), ~Word{0});
      } else {
        const unsigned bit = bit_in_word(&field);
        self().store(word_of(&field), Word{std::bit_cast<U>(value)} << bit, mask_of(sizeof(T), bit));
      }
    } else {
      for_each_word(&field, sizeof(T), [&](Word* word, std::size_t offset, std::size_t first, std::size_t count) {
        if constexpr (kBlame) explain::write(self().descriptor(), word);
        Word part = 0;
        std::memcpy(reinterpret_cast<std::byte*>(&part) + first, reinterpret_cast<const std::byte*>(&value) + offset,
                    count);
        self().store(word, part, mask_of(count, static_cast<unsigned>(first) * 8));
      });
    }
  }

  // Makes an object; an abort frees it. The constructor writes plainly, because no other thread knows the object yet.
  template <class T, class... Arguments>
  T* create(Arguments&&... arguments) {
    static_assert(alignof(T) <= alignof(std::max_align_t), "create: over-aligned types are not supported");
    return ::new (memory::allocate<kBlame>(self().descriptor(), sizeof(T))) T{std::forward<Arguments>(arguments)...};
  }

  // Ends an object's life at commit and frees its memory once no attempt can read it. The object must not need its
  // destructor run: an attempt may abort after this call.
  template <class T>
  void destroy(T* object) {
    static_assert(std::is_trivially_destructible_v<T>, "destroy: the destructor could not be undone by an abort");
    memory::release(self().descriptor(), object, sizeof(T), memory::kDeleterOf<sizeof(T)>);
  }

  // Calls f() after the transaction has committed, or after each attempt that has aborted. It runs outside of
  // the transaction, in the order of these calls. f is copied, must not throw (that ends the program), and may run
  // transactions of its own.
  template <class F>
  void on_commit(F f) {
    add_handler(Handler::Of::commit, f);
  }
  template <class F>
  void on_abort(F f) {
    add_handler(Handler::Of::abort, f);
  }

  // As malloc and free, for callers without a type.
  void* allocate(std::size_t bytes) { return memory::allocate<kBlame>(self().descriptor(), bytes); }
  void release(void* block) { memory::release(self().descriptor(), block, 0); }

 private:
  template <class F>
  void add_handler(Handler::Of outcome, F& f) {
    static_assert(std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F>,
                  "a handler is kept as bytes and dropped without its destructor");
    static_assert(sizeof(F) <= Handler::kArgumentBytes && alignof(F) <= alignof(std::max_align_t),
                  "a handler holds at most 48 bytes: let it hold a pointer");
    Handler handler;
    handler.call = [](void* argument) { (*std::launder(static_cast<F*>(argument)))(); };
    handler.of = outcome;
    ::new (static_cast<void*>(handler.argument)) F(f);
    lifecycle::add_handler(self().descriptor(), handler);
  }

  Tx& self() noexcept { return static_cast<Tx&>(*this); }
};

}  // namespace loam::tm
