// dispatch: an algorithm chosen by name at run time, as tables of functions.
//   The descriptor's mode selects the function (read-only, update, part, alone). So one handle is good for all modes,
//   and a wrong handle, with no running transaction, calls a function that says so. No branch is needed.
//   Cost  an access takes a call, two loads and an indirect jump more than in C++. With LOAM_TM_ALGORITHM, accesses of
//         norec, etl-wb and dctl are inline (docs/embedding.md).
#pragma once

#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/c/open.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {

// One function per Mode.
template <class Function>
struct ByMode {
  static constexpr std::size_t kModes = 8;
  static_assert(static_cast<std::size_t>(Mode::detached) < kModes);

  constexpr ByMode() = default;
  constexpr explicit ByMode(Function outside) { of.fill(outside); }
  constexpr Function& operator[](Mode mode) { return of[static_cast<std::size_t>(mode)]; }
  constexpr Function operator[](Mode mode) const { return of[static_cast<std::size_t>(mode)]; }

  std::array<Function, kModes> of{};
};

struct Operations {
  template <class U>
  using Read = ByMode<U (*)(Descriptor&, const void* address)>;
  template <class U>
  using Write = ByMode<void (*)(Descriptor&, void* address, U value)>;

  const AlgorithmDescription* description;
  bool reads_alike;  // an update that has not written yet may use the reads of Mode::read_only (kReadsAlike)

  Read<std::uint8_t> read_u8;
  Read<std::uint16_t> read_u16;
  Read<std::uint32_t> read_u32;
  Read<std::uint64_t> read_u64;
  ByMode<void (*)(Descriptor&, void* to, const void* address, std::size_t bytes)> read_bytes;
  Write<std::uint8_t> write_u8;
  Write<std::uint16_t> write_u16;
  Write<std::uint32_t> write_u32;
  Write<std::uint64_t> write_u64;
  ByMode<void (*)(Descriptor&, void* address, const void* from, std::size_t bytes)> write_bytes;
  ByMode<void* (*)(Descriptor&, std::size_t bytes)> allocate;
  ByMode<void (*)(Descriptor&, void* block)> release;
  ByMode<void (*)(Descriptor&, Handler::Of outcome, void (*call)(void*), void* argument)> add_handler;
  ByMode<void (*)(Descriptor&, void* address, std::size_t bytes)> keep;

  int (*begin)(Frame&, Descriptor** tx, Kind, std::uintptr_t stack);
  int (*again)(platform::Caller*, int code);
  void (*commit)(Frame&, std::uintptr_t stack);
  bool (*atomically)(Body, void* argument, Kind, std::uintptr_t stack);
  bool (*closed)(Body, void* argument);
  void (*begin_part)(Descriptor&, OpenPart&);
  void (*end_part)(Descriptor&, OpenPart&) noexcept;
  void (*cancel_part)(Descriptor&, OpenPart&);
  void (*or_else)(Body first, Body second, void* argument);
  void (*become_irrevocable)();
  void (*cancel)(Descriptor&);
  void (*retry)();
  void (*restart)();
  void (*release_read)(const void* address, std::size_t bytes);
};

// The tables of an algorithm, or nullptr if there is none of that name.
const Operations* operations_of(std::string_view algorithm) noexcept;

// Never null: before the first choice it points to a table whose functions choose if they begin a transaction, and report
// an error otherwise.
extern constinit std::atomic<const Operations*> chosen;

// The process's tables: those that were chosen; otherwise those of the algorithm that its transactions of C++ use;
// otherwise those of the default algorithm. The choice is final.
const Operations& choose() noexcept;

// Makes the choice, if there is none and no transaction has run. returns false otherwise
bool choose(const Operations& operations) noexcept;

}  // namespace open
}  // namespace loam::tm
