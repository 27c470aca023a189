#include "runtime/itm/exceptions.hpp"

#include "runtime/base/check.hpp"
#include "runtime/itm/interface.hpp"

#include <cstddef>

#include <unwind.h>

extern "C" {
void* __cxa_allocate_exception(std::size_t bytes) noexcept;
void __cxa_free_exception(void* object) noexcept;
[[noreturn]] void __cxa_throw(void* object, void* type, void (*destroy)(void*));
void* __cxa_begin_catch(void* header) noexcept;
void __cxa_end_catch();
void* __cxa_get_globals() noexcept;
// A function of libstdc++ for transactions: drops the exception with this header, and the innermost `caught` exceptions
// that are caught. No destructor runs.
void __cxa_tm_cleanup(void* unthrown, void* header, unsigned caught) noexcept;
}

namespace loam::itm {
namespace {

// What __cxa_get_globals() points to, by the C++ ABI.
struct Globals {
  void* caught;
  unsigned uncaught;
};
Globals& globals() noexcept { return *static_cast<Globals*>(__cxa_get_globals()); }

// Called before the attempt changes the count for the first time.
void remember_uncaught(Exceptions& e) noexcept {
  if (e.known) return;
  e.known = true;
  e.uncaught_before = globals().uncaught;
}

// The unwinder's header lies before the object.
void* header_of(void* object) noexcept { return static_cast<std::byte*>(object) - sizeof(_Unwind_Exception); }

}  // namespace

void note_in_flight(Thread& t, void* header) noexcept { t.exceptions.in_flight = header; }

ExceptionsMark exceptions_now(const Thread& t) noexcept {
  const Exceptions& e = t.exceptions;
  return {e.in_flight, e.caught, e.known ? globals().uncaught : 0, e.known};
}

// A part may have begun in a destructor, while an exception of the attempt went through it: that one goes on.
void revert_exceptions(Thread& t, const ExceptionsMark& to) {
  Exceptions& e = t.exceptions;
  if (e.in_flight != nullptr && e.in_flight != to.in_flight) __cxa_tm_cleanup(nullptr, e.in_flight, 0);
  e.in_flight = to.in_flight;
  if (e.caught > to.caught) __cxa_tm_cleanup(nullptr, nullptr, e.caught - to.caught);
  e.caught = to.caught;
  if (e.known) globals().uncaught = to.known ? to.uncaught : e.uncaught_before;
}

// Until the exception is thrown, an abort of the attempt frees it. Its constructor stores plainly.
LOAM_ITM_EXPORTED void* _ITM_cxa_allocate_exception(std::size_t bytes) {
  void* const object = __cxa_allocate_exception(bytes);
  if (Thread* const t = running()) {
    t->undo.note_block(object, &__cxa_free_exception);
    t->capture(object, bytes, Thread::kCapturedMax + Thread::kExceptionsMax);
  }
  return object;
}

LOAM_ITM_EXPORTED void _ITM_cxa_free_exception(void* object) {
  if (Thread* const t = running()) {
    t->undo.forget_block(object);
    t->release(object);
  }
  __cxa_free_exception(object);
}

LOAM_ITM_EXPORTED [[noreturn]] void _ITM_cxa_throw(void* object, void* type, void* destroy) {
  if (Thread* const t = running()) {
    remember_uncaught(t->exceptions);
    t->undo.forget_block(object);
    t->exceptions.in_flight = header_of(object);
  }
  __cxa_throw(object, type, reinterpret_cast<void (*)(void*)>(destroy));
}

LOAM_ITM_EXPORTED void* _ITM_cxa_begin_catch(void* header) {
  Thread* const t = running();
  if (t == nullptr) return __cxa_begin_catch(header);
  remember_uncaught(t->exceptions);
  t->exceptions.in_flight = nullptr;
  ++t->exceptions.caught;
  void* const caught = __cxa_begin_catch(header);
  t->exceptions.to_object =
      static_cast<std::byte*>(header) + sizeof(_Unwind_Exception) - static_cast<std::byte*>(globals().caught);
  return caught;
}

// The exception ends with the last handler that has it.
LOAM_ITM_EXPORTED void _ITM_cxa_end_catch() {
  Thread* const t = running();
  if (t == nullptr || t->exceptions.caught == 0) return __cxa_end_catch();
  --t->exceptions.caught;
  auto* const innermost = static_cast<std::byte*>(globals().caught);
  __cxa_end_catch();
  if (globals().caught != innermost) t->release(innermost + t->exceptions.to_object);
}

}  // namespace loam::itm
