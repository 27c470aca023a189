// Settings of the library, from the environment, read once:
//   LOAM_MALLOC_STATS=1       a summary on standard error when the process exits
//   LOAM_MALLOC_HARDENED=1    checks that cost time: 0 unless asked for
//   LOAM_MALLOC_BACKGROUND=1  a thread that returns free memory to the system while the program is idle
//   LOAM_MALLOC_GUARD_MS=N    every N ms the process puts a block between guard pages (heap/sampled.hpp); 0: none
//   LOAM_MALLOC_APART=FILE    blocks of the sites in the file get cache lines of their own (apart_sites.hpp)
// LOAM_MALLOC, unknown names that begin with LOAM_MALLOC_, and unknown values are reported on standard error and
// ignored. Programs that run with more rights than their user (set-user-id) ignore all settings.
#pragma once

#include "runtime/platform/machine.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// The dynamic linker's: where the arguments of the process begin, below them only its stack.
extern "C" LOAM_MAY_BE_MISSING void* __libc_stack_end;

namespace loam::malloc {

struct Settings {
  bool statistics_at_exit = false;
  bool hardened = false;
  bool background = false;
  std::uint32_t guard_ms = 0;
  bool apart = false;                // never beside hardened or guard_ms
  const char* apart_file = nullptr;  // of read_settings() only
};

// Works from the first instruction of the process on, before any constructor has run and before libc has set the
// environment. Allocates nothing.
Settings settings() noexcept;

// All settings in one word, so that a thread sees either all of them or none: flags in the low bits, guard_ms in the
// upper half.
inline constexpr std::uint64_t kRead = 1, kStatistics = 2, kHardened = 4, kBackground = 8, kApart = 16;
inline constexpr unsigned kGuardShift = 32;
extern constinit std::atomic<std::uint64_t> read_once;

inline std::uint64_t settings_word() noexcept {
  // relaxed: as in settings().
  const std::uint64_t now = read_once.load(std::memory_order_relaxed);
  if (now != 0) [[likely]]
    return now;
  settings();
  return read_once.load(std::memory_order_relaxed);
}

// settings().hardened, which each call of a hardened process asks for.
inline bool hardened() noexcept { return (settings_word() & kHardened) != 0; }
// Whether each call goes to a heap other than the default one.
inline bool hardened_or_apart() noexcept { return (settings_word() & (kHardened | kApart)) != 0; }
inline bool apart() noexcept { return (settings_word() & kApart) != 0; }
// The file that LOAM_MALLOC_APART names, as long as the environment is as it was; nullptr: none
const char* apart_file() noexcept;
// settings().guard_ms
inline std::uint64_t sample_gap_ns() noexcept { return (settings_word() >> kGuardShift) * 1'000'000; }

// Names every setting that is unknown or has a wrong value, once per process.
void complain_about_settings() noexcept;

// ---- for tests ----

// The settings that these variables ("NAME=value", the last one null) stand for; `complaint` gets a line for each one
// that is wrong.
Settings read_settings(char* const* variables, void (*complaint)(const char* line, std::size_t length)) noexcept;

}  // namespace loam::malloc
