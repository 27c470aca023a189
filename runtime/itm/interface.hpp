// interface: the functions that this library exports, as GCC's code calls them: all 173. The files that define them
// include it, so that a definition with another type is an error of the compiler. tests/unit/itm/interface_test.cpp
// compares it with GCC's own declarations.
//   GCC replaces calls of memcpy, memmove and memset by calls of the block functions, and goes on with the pointer that
//   these return, although it declares the replacements without a result.
#pragma once

#include "runtime/itm/abi.hpp"

#include <cstddef>
#include <cstdint>
#include <new>

#include <immintrin.h>

// of(type, name, attributes)
#define LOAM_ITM_TYPES(of)                                                                                      \
  of(std::uint8_t, U1, ) of(std::uint16_t, U2, ) of(std::uint32_t, U4, ) of(std::uint64_t, U8, ) of(float, F, ) \
      of(double, D, ) of(long double, E, ) of(_Complex float, CF, ) of(_Complex double, CD, )                   \
          of(_Complex long double, CE, ) of(__m64, M64, ) of(__m128, M128, ) of(__m256, M256, [[gnu::target("avx")]])

// of(name, whether the source is read transactionally, whether the target is written so). In the names, Rn and Wn stand
// for a side with plain accesses, Rt and Wt for one with transactional accesses; aR and aW say that the side was read or
// written before.
#define LOAM_ITM_COPIES(of)                                                                                        \
  of(RnWt, false, true) of(RnWtaR, false, true) of(RnWtaW, false, true) of(RtWn, true, false) of(RtWt, true, true) \
      of(RtWtaR, true, true) of(RtWtaW, true, true) of(RtaRWn, true, false) of(RtaRWt, true, true)                 \
          of(RtaRWtaR, true, true) of(RtaRWtaW, true, true) of(RtaWWn, true, false) of(RtaWWt, true, true)         \
              of(RtaWWtaR, true, true) of(RtaWWtaW, true, true)

#define LOAM_ITM_SETS(of) of(W) of(WaR) of(WaW)

namespace loam::itm {

extern "C" {

#define LOAM_ITM_DECLARE_TYPE(T, name, attributes) \
  attributes T _ITM_R##name(const T* from);        \
  attributes T _ITM_RaR##name(const T* from);      \
  attributes T _ITM_RaW##name(const T* from);      \
  attributes T _ITM_RfW##name(const T* from);      \
  attributes void _ITM_W##name(T* to, T value);    \
  attributes void _ITM_WaR##name(T* to, T value);  \
  attributes void _ITM_WaW##name(T* to, T value);  \
  void _ITM_L##name(const T* of);
LOAM_ITM_TYPES(LOAM_ITM_DECLARE_TYPE)
#undef LOAM_ITM_DECLARE_TYPE
void _ITM_LB(const void* of, std::size_t bytes);

// They return the target.
#define LOAM_ITM_DECLARE_COPY(name, reads, writes)                        \
  void* _ITM_memcpy##name(void* to, const void* from, std::size_t bytes); \
  void* _ITM_memmove##name(void* to, const void* from, std::size_t bytes);
LOAM_ITM_COPIES(LOAM_ITM_DECLARE_COPY)
#undef LOAM_ITM_DECLARE_COPY
#define LOAM_ITM_DECLARE_SET(name) void* _ITM_memset##name(void* to, int value, std::size_t bytes);
LOAM_ITM_SETS(LOAM_ITM_DECLARE_SET)
#undef LOAM_ITM_DECLARE_SET

std::uint32_t _ITM_beginTransaction(std::uint32_t properties, ...);
void _ITM_commitTransaction();
void _ITM_commitTransactionEH(void* exception);
[[noreturn]] void _ITM_abortTransaction(std::uint32_t reason);
void _ITM_changeTransactionMode(int mode);

void* _ITM_getTMCloneOrIrrevocable(void* function);
void* _ITM_getTMCloneSafe(void* function);
void _ITM_registerTMCloneTable(void* start, std::size_t count);
void _ITM_deregisterTMCloneTable(void* start);

void* _ITM_malloc(std::size_t bytes);
void* _ITM_calloc(std::size_t count, std::size_t bytes);
void _ITM_free(void* block);
void _ITM_dropReferences(void* start, std::size_t bytes);

// Clones of C++'s allocation functions.
void* _ZGTtnwm(std::size_t bytes);
void* _ZGTtnam(std::size_t bytes);
void* _ZGTtnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag);
void* _ZGTtnamRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag);
void _ZGTtdlPv(void* object);
void _ZGTtdlPvm(void* object, std::size_t bytes);
void _ZGTtdlPvRKSt9nothrow_t(void* object, const std::nothrow_t& tag);
void _ZGTtdlPvmRKSt9nothrow_t(void* object, std::size_t bytes, const std::nothrow_t& tag);
void _ZGTtdaPv(void* array);
void _ZGTtdaPvRKSt9nothrow_t(void* array, const std::nothrow_t& tag);

void* _ITM_cxa_allocate_exception(std::size_t bytes);
void _ITM_cxa_free_exception(void* object);
[[noreturn]] void _ITM_cxa_throw(void* object, void* type, void* destroy);
void* _ITM_cxa_begin_catch(void* header);
void _ITM_cxa_end_catch();

// What programs call themselves.
void _ITM_addUserCommitAction(void (*action)(void*), TransactionId resuming, void* argument);
void _ITM_addUserUndoAction(void (*action)(void*), void* argument);
std::uint32_t _ITM_inTransaction();
TransactionId _ITM_getTransactionId();
int _ITM_versionCompatible(int version);
const char* _ITM_libraryVersion();
[[noreturn]] void _ITM_error(const void* place, int code);

}  // extern "C"

}  // namespace loam::itm
