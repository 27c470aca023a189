#include "runtime/itm/hardware.hpp"

#include "runtime/base/format.hpp"
#include "runtime/itm/thread.hpp"
#include "runtime/platform/machine.hpp"
#include "runtime/platform/provision.hpp"
#include "runtime/sync/backoff.hpp"
#include "runtime/tm/hardware/availability.hpp"
#include "runtime/tm/hardware/hybrid.hpp"
#include "runtime/tm/hardware/policy.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace loam::itm::hardware {
namespace {

using tm::AbortCause;
using tm::hardware::Hybrid;
using tm::hardware::Next;

// Codes with which an attempt ends itself; tm::hardware::kFallbackTaken is another one.
constexpr std::uint8_t kForSoftware = 3, kBesideSoftware = 4;

// ---- barriers of an attempt --------------------------------------------------------------------------------------------

template <class U>
U read(Descriptor&, const void* address) {
  return *static_cast<const U*>(address);
}
void read_bytes(Descriptor&, void* to, const void* address, std::size_t bytes) { std::memcpy(to, address, bytes); }
template <class U>
void write(Descriptor&, void* address, U value) {
  current->wrote_in_hardware = true;
  *static_cast<U*>(address) = value;
}
void write_bytes(Descriptor&, void* address, const void* from, std::size_t bytes) {
  current->wrote_in_hardware = true;
  std::memcpy(address, from, bytes);
}

// The other functions are never called in an attempt, because begin_inside() and leave() end it before.
constexpr open::Operations barriers() {
  open::Operations o{};
  o.read_u8 = decltype(o.read_u8)(&read<std::uint8_t>);
  o.read_u16 = decltype(o.read_u16)(&read<std::uint16_t>);
  o.read_u32 = decltype(o.read_u32)(&read<std::uint32_t>);
  o.read_u64 = decltype(o.read_u64)(&read<std::uint64_t>);
  o.read_bytes = decltype(o.read_bytes)(&read_bytes);
  o.write_u8 = decltype(o.write_u8)(&write<std::uint8_t>);
  o.write_u16 = decltype(o.write_u16)(&write<std::uint16_t>);
  o.write_u32 = decltype(o.write_u32)(&write<std::uint32_t>);
  o.write_u64 = decltype(o.write_u64)(&write<std::uint64_t>);
  o.write_bytes = decltype(o.write_bytes)(&write_bytes);
  return o;
}
constinit const open::Operations kBarriers = barriers();

// The first steps inside an attempt that has begun.
void enter(Thread& t, Descriptor& d, Attempt attempt) noexcept {
  if (Hybrid::must_wait()) platform::transaction_abort<tm::hardware::kFallbackTaken>();
  t.attempt = attempt;
  t.depth = 1;
  if (attempt == Attempt::plain) return;
  t.wrote_in_hardware = false;
  t.d = &d;
  t.operations = &kBarriers;
}

// The same as begin(), but does not count the transaction.
[[gnu::always_inline]] inline Begun begin_uncounted(Thread& t, std::uint32_t properties,
                                                    std::uintptr_t return_address) noexcept {
  Descriptor& d = Descriptor::current_or_detached();
  // Not for transactions that can be cancelled or become irrevocable, and not for the first one of a thread: software
  // attaches the thread.
  if ((properties & (kHasNoAbort | kGoesIrrevocable)) != kHasNoAbort || d.mode != Mode::idle) return Begun::in_software;
  Place& place = t.places.at(return_address);
  if (!place.fit.tries()) return Begun::in_software;
  const bool has_plain = (properties & kHasUninstrumentedCode) != 0;
  const bool has_barriers = (properties & kHasInstrumentedCode) != 0;
  t.place = &place;
  for (unsigned tries = 1;; ++tries) {
    // A guess: a plain attempt beside a software transaction would only fail at its end.
    const bool plain = has_plain && (!has_barriers || !Hybrid::beside_software());
    t.tries = tries;
    const unsigned status = platform::transaction_begin();
    if (status == platform::kTransactionStarted) [[likely]] {
      enter(t, d, plain ? Attempt::plain : Attempt::instrumented);
      return Begun::in_hardware;
    }
    const AbortCause cause = tm::hardware::cause_of(status);
    ++d.statistics.aborts[static_cast<std::size_t>(cause)];
    if (cause == AbortCause::capacity) place.fit.did_not_fit();
    // Not beside a software transaction, whose end it would wait for.
    if (cause == AbortCause::interrupt && plain && !std::exchange(place.ran_alone, true)) return Begun::alone;
    const bool is_own = cause == AbortCause::explicit_ && platform::explicit_code(status) == kBesideSoftware;
    switch (is_own && tries < tm::hardware::kTriesMax && has_barriers ? Next::try_again
                                                                      : tm::hardware::next_after(status, tries)) {
      case Next::fall_back:
        return Begun::in_software;
      case Next::wait_and_try_again: {
        sync::Backoff backoff;
        while (Hybrid::must_wait()) backoff.wait();
        break;
      }
      case Next::provide:
        loam_provision(platform::provision_bytes(platform::explicit_code(status)));
        break;
      case Next::try_again:
        break;
    }
  }
}

}  // namespace

bool chosen(std::string_view algorithm) noexcept {
  if (algorithm != kName) return false;
  const std::string_view reason = tm::hardware::reason_against();
  if (reason.empty()) return true;
  static constinit std::atomic<bool> said{false};
  // relaxed: it only decides which thread prints the line
  if (said.exchange(true, std::memory_order_relaxed)) return false;
  char line[200];
  const auto text = base::format_to(line, "loam libitm: {}: {}; transactions run in software (norec)\n", kName, reason);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  return false;
}

Begun begin(Thread& t, std::uint32_t properties, std::uintptr_t return_address) noexcept {
  const Begun begun = begin_uncounted(t, properties, return_address);
  if (begun != Begun::in_hardware) Hybrid::begin_in_software();
  return begun;
}

void ended_in_software() noexcept { Hybrid::end_in_software(); }

std::uint32_t begin_inside(Thread& t, std::uint32_t properties) noexcept {
  const bool plain = t.attempt == Attempt::plain;
  const std::uint32_t wanted = kHasNoAbort | (plain ? kHasUninstrumentedCode : kHasInstrumentedCode);
  if ((properties & wanted) != wanted || (properties & kGoesIrrevocable) != 0) leave(t);
  ++t.depth;
  return plain ? kRunUninstrumented : kRunInstrumented;
}

void commit(Thread& t) noexcept {
  bool told = false;
  if (t.attempt == Attempt::plain) {
    if (Hybrid::beside_software()) platform::transaction_abort<kBesideSoftware>();
  } else if (t.wrote_in_hardware || t.d->special) {
    told = Hybrid::tell();
  }
  platform::transaction_commit();
  Descriptor& d = Descriptor::current_or_detached();
  t.attempt = Attempt::none;
  t.operations = t.in_software;
  t.place->fit.fitted();
  if (t.tries > 1) d.statistics.count_commit_after(t.tries - 1);
  Hybrid::committed(d, told);
}

void leave(const Thread& t) noexcept {
  if (t.attempt != Attempt::none) platform::transaction_abort<kForSoftware>();
}

}  // namespace loam::itm::hardware
