// dispatch: an algorithm chosen by name at run time, as tables of functions.
//   What depends on how a transaction runs (read-only, update, part, alone) is looked up by the descriptor's mode, so a
//   handle is good for all of them and a wrong one (no transaction runs) meets a function that says so: no branch.
//   Cost  an access is two loads and an indirect jump more than in C++ (docs/embedding.md).
#pragma once

#include "runtime/tm/algorithm.hpp"
#include "runtime/tm/open.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loam::open {

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

  int (*begin)(Frame&, Descriptor** tx, Kind, std::uintptr_t stack);
  int (*again)(platform::Caller*, int code);
  void (*commit)(Frame&, std::uintptr_t stack);
  bool (*atomically)(Body, void* argument, Kind, std::uintptr_t stack);
  bool (*closed)(Body, void* argument);
  void (*or_else)(Body first, Body second, void* argument);
  void (*become_irrevocable)();
  void (*cancel)(Descriptor&);
  void (*retry)();
};

// The tables of an algorithm, or nullptr if there is none of that name.
const Operations* operations_of(std::string_view algorithm) noexcept;

// Not a null pointer before the first choice: accesses then meet a table that only complains.
extern constinit std::atomic<const Operations*> chosen;

// The process's tables: those that were chosen; else those of the algorithm that its transactions of C++ use; else the
// default's. The choice lasts.
const Operations& choose() noexcept;

// Makes the choice, if there is none and no transaction has run. returns false otherwise
bool choose(const Operations& operations) noexcept;

}  // namespace loam::open
