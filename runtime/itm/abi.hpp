// abi: words of the interface between code compiled by GCC with -fgnu-tm and its runtime library.
//   Source  "Intel Transactional Memory Compiler and Runtime Application Binary Interface", revision 1.0.1, and what GCC
//           12 emits (docs/libitm.md).
#pragma once

#include <cstdint>

// An exported function of the interface.
#define LOAM_ITM_EXPORTED extern "C" [[gnu::visibility("default")]]

namespace loam::itm {

// What the compiler says of a transaction when it begins.
inline constexpr std::uint32_t kHasInstrumentedCode = 0x1, kHasUninstrumentedCode = 0x2, kHasNoAbort = 0x8,
                               kGoesIrrevocable = 0x40, kReadOnly = 0x4000;

// What a begin tells the code to do.
inline constexpr std::uint32_t kRunInstrumented = 1, kRunUninstrumented = 2, kSaveVariables = 4, kRestoreVariables = 8,
                               kSkipBody = 16;

// Why code ends a transaction.
inline constexpr std::uint32_t kUserAbort = 1, kOuterAbort = 16;

enum HowExecuting : std::uint32_t { outsideTransaction, inRetryableTransaction, inIrrevocableTransaction };

using TransactionId = std::uint64_t;
inline constexpr TransactionId kNoTransactionId = 1;

inline constexpr int kInterfaceVersion = 90;

}  // namespace loam::itm
