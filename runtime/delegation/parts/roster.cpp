#include "runtime/delegation/parts/roster.hpp"

#include "runtime/base/format.hpp"
#include "runtime/platform/pages.hpp"

#include <cxxabi.h>
#include <mutex>
#include <string>
#include <utility>

// Of the library or program that this is linked into, which stays as long as what is to be called at a thread's end.
extern "C" [[gnu::visibility("hidden")]] void* __dso_handle;

namespace loam::delegation {
namespace {

constinit std::atomic<std::uint64_t> last_number{0};
constexpr std::size_t kPlacesBytes = Roster::kPlacesMax * sizeof(std::atomic<Cell*>);

[[noreturn]] void throw_full() {
  char text[256];
  throw Full(std::string(
      base::format_to(text,
                      "apply: {} requests are under way, or their places reserved by threads, and there is "
                      "room for no more; take the answers of tickets, let threads end, or use a second object",
                      Roster::kPlacesMax)));
}

// Frees a cell that neither side needs any more, and the line of answers that belongs to it.
void dispose(Cell& cell) noexcept {
  if (cell.partner != nullptr) Cells::give_to_pool(*cell.partner);
  cell.partner = nullptr;
  Cells::give_to_pool(cell);
}

}  // namespace

// The calling thread ends. Another of its variables may be destroyed later, and make requests: it leaves once more then.
void Roster::leave(void*) noexcept {
  leaves_at_end_ = false;
  while (Cell* const cell = owned_) {
    owned_ = cell->owned;
    // roster.B.  R1: 0 if the roster is gone, now or a moment later.
    std::uint64_t number = cell->owner.load(std::memory_order_acquire);
    if (number == 0 || !cell->owner.compare_exchange_strong(number, number | kLeft, std::memory_order_acq_rel))
      dispose(*cell);
  }
  for (auto& known : remembered_) known = {};
}

// relaxed: a number carries no data.
Roster::Roster()
    : number_(last_number.fetch_add(1, std::memory_order_relaxed) + 1),
      places_(static_cast<std::atomic<Cell*>*>(platform::map_lazy_or_die(kPlacesBytes, "the clients of a domain"))) {}

Roster::~Roster() {
  for (std::uint32_t place = 0; place < high(); ++place) {
    Cell& cell = at(place);
    // roster.B.  R1: the thread frees it, now or when it ends, unless it has ended.
    if ((cell.owner.exchange(0, std::memory_order_acq_rel) & kLeft) != 0) dispose(cell);
  }
  platform::unmap(places_, kPlacesBytes);
}

Cell& Roster::take_slow() {
  if (!std::exchange(leaves_at_end_, true)) abi::__cxa_thread_atexit(&leave, nullptr, &__dso_handle);
  Remembered& known = remembered_[number_ % kRememberedMax];
  known = {number_, nullptr};
  for (Cell** place = &owned_; *place != nullptr;) {
    Cell& cell = **place;
    const std::uint64_t owner = cell.owner.load(std::memory_order_acquire);  // roster.B
    if (owner == 0 && !cell.busy) {
      *place = cell.owned;
      dispose(cell);
      continue;
    }
    if (owner == number_ && !cell.busy) {
      cell.link = known.idle;
      known.idle = &cell;
    }
    place = &cell.owned;
  }
  Cell* cell = known.idle;
  if (cell != nullptr) {
    known.idle = cell->link;
  } else {
    cell = join();
    cell->owned = owned_;
    owned_ = cell;
  }
  cell->busy = true;
  return *cell;
}

Cell* Roster::join() {
  const std::scoped_lock guard(joining_);
  const std::uint32_t end = high_.load(std::memory_order_relaxed);  // relaxed: changes under the lock only
  for (std::uint32_t place = 0; place < end; ++place) {
    Cell& cell = at(place);
    std::uint64_t left = number_ | kLeft;
    // roster.B.  Acquire before `busy` is looked at: who left wrote it. One who left while a request waits (a ticket that
    // was given away) leaves its cell to nobody.
    if (cell.owner.load(std::memory_order_acquire) == left && !cell.busy &&
        cell.owner.compare_exchange_strong(left, number_, std::memory_order_acq_rel))  // roster.B
      return &cell;
  }
  if (end == kPlacesMax) throw_full();
  Cell& cell = Cells::take_from_pool();
  cell.state.store(0, std::memory_order_relaxed);  // relaxed: published with its place
  cell.sleeping.store(0, std::memory_order_relaxed);
  cell.next.store(nullptr, std::memory_order_relaxed);
  cell.busy = false;
  cell.partner = nullptr;
  cell.place = end;
  cell.toggled = 0;
  cell.owner.store(number_, std::memory_order_relaxed);
  places_[end].store(&cell, std::memory_order_relaxed);
  high_.store(end + 1, std::memory_order_release);  // roster.A
  return &cell;
}

}  // namespace loam::delegation
