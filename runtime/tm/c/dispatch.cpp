#include "runtime/tm/c/dispatch.hpp"

#include "runtime/tm/access.hpp"
#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/attempts/kept.hpp"
#include "runtime/tm/c/config.hpp"
#include "runtime/tm/c/inlined.hpp"
#include "runtime/tm/tm.hpp"

#include <cstring>
#include <new>
#include <type_traits>

namespace loam::tm {
namespace [[gnu::visibility("hidden")]] open {
namespace {

// ---- what the accesses of one type of transaction do ----------------------------------------------------------------

// Calls piece.operator()<U>(offset) for naturally aligned pieces that cover [address, +bytes).
template <class Piece>
void for_each_piece(const void* address, std::size_t bytes, Piece&& piece) {
  for (std::size_t done = 0; done < bytes;) {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address) + done;
    const std::size_t left = bytes - done;
    const auto fits = [&](std::size_t size) { return at % size == 0 && left >= size; };
    if (fits(8))
      piece.template operator()<std::uint64_t>(done), done += 8;
    else if (fits(4))
      piece.template operator()<std::uint32_t>(done), done += 4;
    else if (fits(2))
      piece.template operator()<std::uint16_t>(done), done += 2;
    else
      piece.template operator()<std::uint8_t>(done), done += 1;
  }
}

void check_handle([[maybe_unused]] const Descriptor& d) noexcept {
  LOAM_ASSERT(&d == &Descriptor::current_or_detached(), "tm: a loam_tx of another thread");
}

template <class U>
void check_aligned([[maybe_unused]] const void* address) noexcept {
  LOAM_ASSERT(reinterpret_cast<std::uintptr_t>(address) % sizeof(U) == 0,
              "tm: {} is no place for a value of {} bytes, which must be aligned; use loam_tx_read_bytes() and "
              "loam_tx_write_bytes()",
              address, sizeof(U));
}

template <Algorithm A, class Tx>
struct Accesses {
  static constexpr bool kWrites = !std::is_same_v<Tx, typename A::ReadOnlyTx>;

  template <class U>
  static U read(Descriptor& d, const void* address) {
    check_handle(d);
    check_aligned<U>(address);
    return Tx(d).read(*static_cast<const U*>(address));
  }

  static void read_bytes(Descriptor& d, void* to, const void* address, std::size_t bytes) {
    check_handle(d);
    Tx tx(d);
    for_each_piece(address, bytes, [&]<class U>(std::size_t offset) {
      const U value = tx.read(*reinterpret_cast<const U*>(static_cast<const std::byte*>(address) + offset));
      std::memcpy(static_cast<std::byte*>(to) + offset, &value, sizeof value);
    });
  }

  template <class U>
  static void write(Descriptor& d, void* address, U value) {
    check_handle(d);
    check_aligned<U>(address);
    writing(d, [&](auto& tx) { tx.write(*static_cast<U*>(address), value); });
  }

  static void write_bytes(Descriptor& d, void* address, const void* from, std::size_t bytes) {
    check_handle(d);
    writing(d, [&](auto& tx) {
      for_each_piece(address, bytes, [&]<class U>(std::size_t offset) {
        U value;
        std::memcpy(&value, static_cast<const std::byte*>(from) + offset, sizeof value);
        tx.write(*reinterpret_cast<U*>(static_cast<std::byte*>(address) + offset), value);
      });
    });
  }

  static void* allocate(Descriptor& d, std::size_t bytes) {
    void* block = nullptr;
    try {
      writing(d, [&](auto& tx) { block = tx.allocate(bytes); });
    } catch (const std::bad_alloc&) {
    }
    return block;
  }

  static void release(Descriptor& d, void* block) {
    writing(d, [&](auto& tx) { tx.release(block); });
  }

  static void add_handler(Descriptor& d, Handler::Of outcome, void (*call)(void*), void* argument) {
    const auto handler = [call, argument] {
      running.transaction = nullptr;  // the attempt is over
      call(argument);
    };
    writing(d, [&](auto& tx) {
      if (outcome == Handler::Of::commit)
        tx.on_commit(handler);
      else
        tx.on_abort(handler);
    });
  }

  static void keep(Descriptor& d, void* address, std::size_t bytes) {
    writing(d, [&](auto&) { lifecycle::keep(d, address, bytes); });
  }

 private:
  template <class F>
  static void writing(Descriptor& d, F&& f) {
    if constexpr (kWrites) {
      Tx tx(d);
      f(tx);
    } else {
      OpenDriver<A>::write_in_read_only();
    }
  }
};

// ---- tables ---------------------------------------------------------------------------------------------------------

enum class Access { read, write, malloc, free, handler, keep };
constexpr std::string_view kCalls[] = {"loam_tx_read_...()", "loam_tx_write_...()", "loam_tx_malloc()",
                                       "loam_tx_free()",     "loam_tx_on_...()",    "loam_tx_keep()"};

// What every access does where no transaction runs.
template <Access kAccess, class Result, class... Arguments>
[[gnu::cold]] Result outside(Descriptor&, Arguments...) {
  LOAM_FATAL(
      "tm: {} outside of transactions; a loam_tx can be used until its transaction has ended, by its thread alone",
      kCalls[static_cast<std::size_t>(kAccess)]);
}

template <Access kAccess, class Function>
struct Outside;
template <Access kAccess, class Result, class... Arguments>
struct Outside<kAccess, Result (*)(Descriptor&, Arguments...)> {
  static constexpr auto kFunction = &outside<kAccess, Result, Arguments...>;
};

// A row in which every mode complains, and one with the functions that pick(type_identity<Accesses<A, Tx>>) names.
template <Access kAccess, class Function>
constexpr void fill(ByMode<Function>& row) {
  row = ByMode<Function>(Outside<kAccess, Function>::kFunction);
}
template <Algorithm A, class Function, class Pick>
constexpr void fill(ByMode<Function>& row, Pick pick) {
  row[Mode::read_only] = pick(std::type_identity<Accesses<A, typename A::ReadOnlyTx>>{});
  row[Mode::update] = pick(std::type_identity<Accesses<A, typename A::UpdateTx>>{});
  row[Mode::nested] = pick(std::type_identity<Accesses<A, typename A::NestedTx>>{});
  row[Mode::serial] = pick(std::type_identity<Accesses<A, IrrevocableTx>>{});
}

#define LOAM_PICK(function) [](auto of) { return &decltype(of)::type::function; }

// Before the first choice, what begins or ends a transaction chooses.
int begin_first(Frame& frame, Descriptor** tx, Kind kind, std::uintptr_t stack) {
  return choose().begin(frame, tx, kind, stack);
}
void commit_first(Frame& frame, std::uintptr_t stack) { choose().commit(frame, stack); }
bool atomically_first(Body body, void* argument, Kind kind, std::uintptr_t stack) {
  return choose().atomically(body, argument, kind, stack);
}

constexpr Operations complaints() {
  Operations o{};
  o.begin = &begin_first;
  o.commit = &commit_first;
  o.atomically = &atomically_first;
  fill<Access::read>(o.read_u8);
  fill<Access::read>(o.read_u16);
  fill<Access::read>(o.read_u32);
  fill<Access::read>(o.read_u64);
  fill<Access::read>(o.read_bytes);
  fill<Access::write>(o.write_u8);
  fill<Access::write>(o.write_u16);
  fill<Access::write>(o.write_u32);
  fill<Access::write>(o.write_u64);
  fill<Access::write>(o.write_bytes);
  fill<Access::malloc>(o.allocate);
  fill<Access::free>(o.release);
  fill<Access::handler>(o.add_handler);
  fill<Access::keep>(o.keep);
  return o;
}

template <Algorithm A>
consteval bool reads_alike() {
  if constexpr (requires { A::kReadsAlike; }) return A::kReadsAlike;
  return false;
}

template <Algorithm A>
constexpr Operations operations() {
  Operations o = complaints();
  fill<A>(o.read_u8, LOAM_PICK(template read<std::uint8_t>));
  fill<A>(o.read_u16, LOAM_PICK(template read<std::uint16_t>));
  fill<A>(o.read_u32, LOAM_PICK(template read<std::uint32_t>));
  fill<A>(o.read_u64, LOAM_PICK(template read<std::uint64_t>));
  fill<A>(o.read_bytes, LOAM_PICK(read_bytes));
  fill<A>(o.write_u8, LOAM_PICK(template write<std::uint8_t>));
  fill<A>(o.write_u16, LOAM_PICK(template write<std::uint16_t>));
  fill<A>(o.write_u32, LOAM_PICK(template write<std::uint32_t>));
  fill<A>(o.write_u64, LOAM_PICK(template write<std::uint64_t>));
  fill<A>(o.write_bytes, LOAM_PICK(write_bytes));
  fill<A>(o.allocate, LOAM_PICK(allocate));
  fill<A>(o.release, LOAM_PICK(release));
  fill<A>(o.add_handler, LOAM_PICK(add_handler));
  fill<A>(o.keep, LOAM_PICK(keep));
  using Driver = OpenDriver<A>;
  o.description = &A::kDescription;
  o.reads_alike = reads_alike<A>();
  o.begin = &Driver::begin;
  o.again = &Driver::again;
  o.commit = &Driver::commit;
  o.atomically = &Driver::atomically;
  o.closed = &Driver::closed;
  o.begin_part = &Driver::begin_part;
  o.end_part = &Driver::end_part;
  o.cancel_part = &Driver::cancel_part;
  o.or_else = &Driver::or_else;
  o.become_irrevocable = &Driver::become_irrevocable;
  o.cancel = &Driver::cancel;
  o.retry = &Driver::retry;
  o.restart = &Driver::restart;
  o.release_read = &Driver::release_read;
  return o;
}

#undef LOAM_PICK

template <Algorithm A>
constinit const Operations kOperations = operations<A>();
constinit const Operations kComplaints = complaints();

// Reads a byte of the default algorithm's functions and names when the program is loaded, so that the kernel has mapped
// their pages before the first transaction runs into them, and backs the page of its sequence number. A page fault costs
// two or three microseconds.
[[gnu::constructor]] void touch_default() noexcept {
  const Operations& o = kOperations<DefaultAlgorithm>;
  const auto read = [](auto* place) { *reinterpret_cast<const volatile char*>(place); };
  read(&::loam_atomically);
  read(o.description->name.data());
  read(o.atomically);
  read(o.begin);
  read(o.read_u64[Mode::update]);
  read(o.write_u64[Mode::update]);
  norec_sequence.now.fetch_add(0, std::memory_order_relaxed);  // relaxed: changes nothing
}

}  // namespace

const Operations* operations_of(std::string_view algorithm) noexcept {
  const Operations* found = nullptr;
  Algorithms::with<false>(algorithm, [&]<class A>() { found = &kOperations<A>; });
  return found;
}

constinit std::atomic<const Operations*> chosen{&kComplaints};

const Operations& choose() noexcept {
  const Operations* operations = chosen.load(std::memory_order_relaxed);  // relaxed: the tables are constants
  if (operations != &kComplaints) return *operations;
  const Hooks* const hooks = shared.algorithm.load(std::memory_order_relaxed);  // relaxed: as above
  if (hooks == nullptr) {
    configure_by_environment();
    operations = chosen.load(std::memory_order_relaxed);  // relaxed: as above
    if (operations != &kComplaints) return *operations;
  }
  const std::string_view name = hooks != nullptr               ? hooks->description->name
                                : !inlined_algorithm().empty() ? inlined_algorithm()
                                                               : DefaultAlgorithm::kDescription.name;
  check_inlined(name);
  const Operations* const wanted = operations_of(name);
  LOAM_CHECK(wanted != nullptr, "tm: the algorithm {} has no interface for C", name);
  return chosen.compare_exchange_strong(operations, wanted, std::memory_order_relaxed) ? *wanted : *operations;
}

bool choose(const Operations& operations) noexcept {
  if (shared.algorithm.load(std::memory_order_relaxed) != nullptr) return false;  // relaxed: guards against misuse
  chosen.store(&operations, std::memory_order_relaxed);
  return true;
}

}  // namespace open
}  // namespace loam::tm
