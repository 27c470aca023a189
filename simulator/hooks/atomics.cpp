// The hooks that replace atomic operations, and perform them. One thread runs at a time, so plain code is atomic here,
// after the simulated access has happened.
#include "simulator/engine/access.hpp"
#include "simulator/engine/checker.hpp"
#include "simulator/hooks/exported.hpp"

#include <cstdint>

using loam::simulator::access;
using loam::simulator::checker;
using loam::simulator::Kind;
using loam::simulator::Order;
using loam::simulator::simulated;

namespace {

using a8 = std::uint8_t;
using a16 = std::uint16_t;
using a32 = std::uint32_t;
using a64 = std::uint64_t;
__extension__ using a128 = unsigned __int128;

constexpr int kSeqCst = 5;

std::uintptr_t number(const volatile void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// The access before an atomic operation: what it costs, or the others' turn where schedules are checked.
[[gnu::always_inline]] inline void before(const volatile void* p, unsigned bytes, Kind kind, char what, int order,
                                          const void* pc) {
  if (checker == nullptr) [[likely]]
    access(p, bytes, kind, pc);
  else if (simulated())
    checker->step(number(p), what, static_cast<Order>(order), number(pc));
}

// What a load sees: where schedules are checked, perhaps an older value. Of 16 bytes always the newest.
template <class Word>
Word seen(const volatile Word* p, int order) {
  if (checker == nullptr) return *p;
  if (sizeof(Word) <= 8 && simulated())
    return static_cast<Word>(checker->load(number(p), static_cast<Order>(order), static_cast<std::uint64_t>(*p)));
  checker->newest(number(p), static_cast<Order>(order), static_cast<std::uint64_t>(*p));
  return *p;
}

template <class Word>
void stored(const volatile Word* p, int order, Word value) {
  if (checker != nullptr)
    checker->store(number(p), static_cast<Order>(order), static_cast<std::uint64_t>(*p),
                   static_cast<std::uint64_t>(value));
}

template <class Word>
void modified(const volatile Word* p, int order, Word before, Word value) {
  if (checker != nullptr)
    checker->modify(number(p), static_cast<Order>(order), static_cast<std::uint64_t>(before),
                    static_cast<std::uint64_t>(value));
}

template <class Word>
void refused(const volatile Word* p, int order, Word before) {
  if (checker != nullptr) checker->newest(number(p), static_cast<Order>(order), static_cast<std::uint64_t>(before));
}

}  // namespace

// A seq_cst store drains the store buffer, as the exchange does that x86 compilers make of it.
#define LOAM_ATOMICS(bits)                                                                                 \
  LOAM_EXPORTED a##bits __tsan_atomic##bits##_load(const volatile a##bits* p, int order) {                 \
    before(p, bits / 8, Kind::read, 'L', order, LOAM_CALLER);                                              \
    return seen(p, order);                                                                                 \
  }                                                                                                        \
  LOAM_EXPORTED void __tsan_atomic##bits##_store(volatile a##bits* p, a##bits value, int order) {          \
    before(p, bits / 8, order == kSeqCst ? Kind::atomic : Kind::write, 'S', order, LOAM_CALLER);           \
    stored(p, order, value);                                                                               \
    *p = value;                                                                                            \
  }                                                                                                        \
  LOAM_MODIFY(bits, exchange, value)                                                                       \
  LOAM_MODIFY(bits, fetch_add, static_cast<a##bits>(was + value))                                          \
  LOAM_MODIFY(bits, fetch_sub, static_cast<a##bits>(was - value))                                          \
  LOAM_MODIFY(bits, fetch_and, was& value)                                                                 \
  LOAM_MODIFY(bits, fetch_or, was | value)                                                                 \
  LOAM_MODIFY(bits, fetch_xor, was ^ value)                                                                \
  LOAM_MODIFY(bits, fetch_nand, static_cast<a##bits>(~(was & value)))                                      \
  LOAM_EXPORTED a##bits __tsan_atomic##bits##_compare_exchange_val(volatile a##bits* p, a##bits expected,  \
                                                                   a##bits value, int order, int failed) { \
    before(p, bits / 8, Kind::atomic, 'M', order, LOAM_CALLER);                                            \
    const a##bits was = *p;                                                                                \
    if (was != expected) {                                                                                 \
      refused(p, failed, was);                                                                             \
      return was;                                                                                          \
    }                                                                                                      \
    modified(p, order, was, value);                                                                        \
    *p = value;                                                                                            \
    return was;                                                                                            \
  }                                                                                                        \
  LOAM_COMPARE_EXCHANGE(bits, strong)                                                                      \
  LOAM_COMPARE_EXCHANGE(bits, weak)

#define LOAM_MODIFY(bits, name, after)                                                                \
  LOAM_EXPORTED a##bits __tsan_atomic##bits##_##name(volatile a##bits* p, a##bits value, int order) { \
    before(p, bits / 8, Kind::atomic, 'M', order, LOAM_CALLER);                                       \
    const a##bits was = *p;                                                                           \
    modified(p, order, was, static_cast<a##bits>(after));                                             \
    *p = after;                                                                                       \
    return was;                                                                                       \
  }

#define LOAM_COMPARE_EXCHANGE(bits, kind)                                                                 \
  LOAM_EXPORTED int __tsan_atomic##bits##_compare_exchange_##kind(volatile a##bits* p, a##bits* expected, \
                                                                  a##bits value, int order, int failed) { \
    before(p, bits / 8, Kind::atomic, 'M', order, LOAM_CALLER);                                           \
    const a##bits was = *p;                                                                               \
    if (was == *expected) {                                                                               \
      modified(p, order, was, value);                                                                     \
      *p = value;                                                                                         \
      return 1;                                                                                           \
    }                                                                                                     \
    refused(p, failed, was);                                                                              \
    *expected = was;                                                                                      \
    return 0;                                                                                             \
  }

LOAM_ATOMICS(8)
LOAM_ATOMICS(16)
LOAM_ATOMICS(32)
LOAM_ATOMICS(64)
LOAM_ATOMICS(128)

LOAM_EXPORTED void __tsan_atomic_thread_fence(int order) {
  constexpr std::uint64_t kFenceCycles = 20;
  if (order == kSeqCst) loam::simulator::spend(kFenceCycles);
  if (checker != nullptr && simulated()) checker->fence(static_cast<Order>(order), number(LOAM_CALLER));
}
LOAM_EXPORTED void __tsan_atomic_signal_fence(int) {}
