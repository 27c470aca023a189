// c_api: the functions of include/loam/tm.h over the tables of dispatch.hpp.
#include "include/loam/tm.h"

#include "runtime/tm/algorithms.hpp"
#include "runtime/tm/c/config.hpp"
#include "runtime/tm/c/dispatch.hpp"
#include "runtime/tm/tm.hpp"

#include <algorithm>

namespace loam::tm {
namespace {

static_assert(sizeof(open::Frame) <= offsetof(loam_tx_frame, tx),
              "the frame of the header has room for that of open.hpp");
static_assert(alignof(open::Frame) <= alignof(loam_tx_frame));
static_assert(sizeof(void*) == sizeof(std::uint64_t), "a pointer is read and written as a word");
static_assert(kAbortCausesMax == LOAM_ABORT_CAUSES_MAX);

Descriptor& descriptor(loam_tx* tx) noexcept { return *reinterpret_cast<Descriptor*>(tx); }
loam_tx* handle(Descriptor& d) noexcept { return reinterpret_cast<loam_tx*>(&d); }
open::Frame& frame_of(loam_tx_frame* frame) noexcept { return *reinterpret_cast<open::Frame*>(frame); }

// relaxed: the tables are constants
const open::Operations& operations() noexcept { return *open::chosen.load(std::memory_order_relaxed); }

[[gnu::cold, gnu::noinline]] void refuse_flags_unless_both(unsigned flags) noexcept {
  LOAM_CHECK(flags == (LOAM_READ_ONLY | LOAM_IRREVOCABLE),
             "tm: flags={}: there are LOAM_READ_ONLY and LOAM_IRREVOCABLE", flags);
}

open::Kind kind_of(unsigned flags) noexcept {
  static_assert(static_cast<unsigned>(open::Kind::read_only) == LOAM_READ_ONLY &&
                static_cast<unsigned>(open::Kind::serial) == LOAM_IRREVOCABLE);
  if (flags <= LOAM_IRREVOCABLE) [[likely]]
    return static_cast<open::Kind>(flags);
  refuse_flags_unless_both(flags);
  return open::Kind::serial;
}

void check_inside(const Descriptor& d, const char* call) noexcept {
  LOAM_CHECK(d.mode != Mode::idle && d.mode != Mode::detached, "tm: {} outside of transactions", call);
}

// A body of C, to be handed to a driver.
struct Body {
  loam_body function;
  void* argument;
  static void call(Descriptor& d, void* self) {
    const Body& body = *static_cast<const Body*>(self);
    body.function(handle(d), body.argument);
  }
};

void copy(loam_statistics& to, const Statistics& from) noexcept {
  to = {};
  to.attempts = from.attempts;
  to.commits = from.commits;
  std::copy(from.aborts.begin(), from.aborts.end(), to.aborts);
  to.blocks_allocated = from.blocks_allocated;
  to.blocks_freed = from.blocks_freed;
}

}  // namespace

extern "C" {

// ---- running transactions

int loam_atomically(loam_body body, void* argument, unsigned flags) {
  Body call{body, argument};
  return operations().atomically(&Body::call, &call, kind_of(flags), LOAM_STACK_OF_CALLER()) ? LOAM_COMMITTED
                                                                                             : LOAM_CANCELLED;
}

#ifdef LOAM_TX_SETJMP
int loam_tx_begin_after(loam_tx_frame* frame, unsigned flags, int code) {
  if (code != 0) return operations().again(&frame_of(frame).caller, code);
  auto** const tx = reinterpret_cast<Descriptor**>(&frame->tx);
  const std::uintptr_t stack = LOAM_STACK_OF_CALLER();
  frame_of(frame).caller.stack_pointer = stack;
  return operations().begin(frame_of(frame), tx, kind_of(flags), stack);
}
#else
// Runs in the place of loam_tx_begin(), which has saved its caller in the frame.
[[gnu::visibility("hidden")]] int loam_tx_begin_saved(loam_tx_frame* frame, unsigned flags) {
  auto** const tx = reinterpret_cast<Descriptor**>(&frame->tx);
  return operations().begin(frame_of(frame), tx, kind_of(flags), LOAM_STACK_OF_CALLER());
}
LOAM_DEFINE_ENTRY_THAT_SAVES_ITS_CALLER(loam_tx_begin, loam_tx_begin_saved);
#endif

void loam_tx_commit(loam_tx_frame* frame) { operations().commit(frame_of(frame), LOAM_STACK_OF_CALLER()); }

loam_tx* loam_tx_current(void) {
  Descriptor& d = Descriptor::current_or_detached();
  if (d.mode == Mode::idle || d.mode == Mode::detached) return nullptr;
  open::choose();
  return handle(d);
}

// ---- inside a transaction

#define LOAM_ACCESS(row, ...) operations().row[descriptor(tx).mode](descriptor(tx), __VA_ARGS__)

uint8_t loam_tx_read_u8(loam_tx* tx, const void* address) { return LOAM_ACCESS(read_u8, address); }
uint16_t loam_tx_read_u16(loam_tx* tx, const void* address) { return LOAM_ACCESS(read_u16, address); }
uint32_t loam_tx_read_u32(loam_tx* tx, const void* address) { return LOAM_ACCESS(read_u32, address); }
uint64_t loam_tx_read_u64(loam_tx* tx, const void* address) { return LOAM_ACCESS(read_u64, address); }
void* loam_tx_read_ptr(loam_tx* tx, const void* address) {
  return reinterpret_cast<void*>(LOAM_ACCESS(read_u64, address));
}
void loam_tx_read_bytes(loam_tx* tx, void* to, const void* address, size_t bytes) {
  LOAM_ACCESS(read_bytes, to, address, bytes);
}

void loam_tx_write_u8(loam_tx* tx, void* address, uint8_t value) { LOAM_ACCESS(write_u8, address, value); }
void loam_tx_write_u16(loam_tx* tx, void* address, uint16_t value) { LOAM_ACCESS(write_u16, address, value); }
void loam_tx_write_u32(loam_tx* tx, void* address, uint32_t value) { LOAM_ACCESS(write_u32, address, value); }
void loam_tx_write_u64(loam_tx* tx, void* address, uint64_t value) { LOAM_ACCESS(write_u64, address, value); }
void loam_tx_write_ptr(loam_tx* tx, void* address, const void* value) {
  LOAM_ACCESS(write_u64, address, reinterpret_cast<std::uint64_t>(value));
}
void loam_tx_write_bytes(loam_tx* tx, void* address, const void* from, size_t bytes) {
  LOAM_ACCESS(write_bytes, address, from, bytes);
}

void* loam_tx_malloc(loam_tx* tx, size_t bytes) { return LOAM_ACCESS(allocate, bytes); }
void loam_tx_free(loam_tx* tx, void* block) { LOAM_ACCESS(release, block); }
void loam_tx_on_commit(loam_tx* tx, void (*function)(void*), void* argument) {
  LOAM_ACCESS(add_handler, Handler::Of::commit, function, argument);
}
void loam_tx_on_abort(loam_tx* tx, void (*function)(void*), void* argument) {
  LOAM_ACCESS(add_handler, Handler::Of::abort, function, argument);
}

void loam_tx_keep(loam_tx* tx, void* variable, size_t bytes) { LOAM_ACCESS(keep, variable, bytes); }

#undef LOAM_ACCESS

void loam_tx_privatize(loam_tx* tx, const void*) {
  check_inside(descriptor(tx), "loam_tx_privatize()");
  lifecycle::privatize(descriptor(tx));
}

void loam_tx_release_read(loam_tx* tx, const void* address, size_t bytes) {
  check_inside(descriptor(tx), "loam_tx_release_read()");
  operations().release_read(address, bytes);
}

void loam_tx_restart(loam_tx* tx) {
  check_inside(descriptor(tx), "loam_tx_restart()");
  operations().restart();
  __builtin_unreachable();
}

void loam_tx_retry(loam_tx* tx) {
  check_inside(descriptor(tx), "loam_tx_retry()");
  operations().retry();
  __builtin_unreachable();
}

void loam_tx_cancel(loam_tx* tx) {
  check_inside(descriptor(tx), "loam_tx_cancel()");
  operations().cancel(descriptor(tx));
  __builtin_unreachable();
}

int loam_tx_closed(loam_tx* tx, loam_body body, void* argument) {
  check_inside(descriptor(tx), "loam_tx_closed()");
  Body call{body, argument};
  return operations().closed(&Body::call, &call) ? LOAM_COMMITTED : LOAM_CANCELLED;
}

void loam_tx_or_else(loam_tx* tx, loam_body first, loam_body second, void* argument) {
  check_inside(descriptor(tx), "loam_tx_or_else()");
  struct Both {
    Body first, second;
  } both{{first, argument}, {second, argument}};
  operations().or_else([](Descriptor& d, void* self) { Body::call(d, &static_cast<Both*>(self)->first); },
                       [](Descriptor& d, void* self) { Body::call(d, &static_cast<Both*>(self)->second); }, &both);
}

void loam_tx_become_irrevocable(loam_tx* tx) {
  check_inside(descriptor(tx), "loam_tx_become_irrevocable()");
  operations().become_irrevocable();
}

// ---- the process

void loam_config_default(loam_config* config) { *config = open::default_config(); }
int loam_configure(const loam_config* config) { return open::configure(*config); }
const char* loam_error(void) { return open::last_error(); }

const char* loam_algorithm_name(unsigned index) {
  // The names are literals, which end in 0.
  return index < Algorithms::kCount ? Algorithms::kNames[index].data() : nullptr;
}

const char* loam_algorithm_in_use(void) { return open::choose().description->name.data(); }

void loam_thread_exit(void) { thread_exit(); }
size_t loam_quiesce(void) { return quiesce(); }

void loam_statistics_of_thread(loam_statistics* out) { copy(*out, statistics()); }
void loam_statistics_of_process(loam_statistics* out) { copy(*out, statistics_of_all()); }
const char* loam_abort_cause_name(unsigned cause) {
  return cause < kAbortCauses ? name_of(static_cast<AbortCause>(cause)).data() : nullptr;
}

#define LOAM_TEXT_OF(value) #value
#define LOAM_TEXT(value) LOAM_TEXT_OF(value)
const char* loam_version(void) {
  return LOAM_TEXT(LOAM_VERSION_MAJOR) "." LOAM_TEXT(LOAM_VERSION_MINOR) "." LOAM_TEXT(LOAM_VERSION_PATCH);
}

}  // extern "C"

}  // namespace loam::tm
