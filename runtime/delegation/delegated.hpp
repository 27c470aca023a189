// delegated<T>: an object that threads change through operations. One thread at a time executes an operation: a thread
// that has the object in its cache.
//   loam::delegated<std::map<int, int>> ages;                                    // CC-Synch
//   const bool added = ages.apply([](auto& map) { return map.emplace(7, 40).second; });
//
//   loam::delegation::Server<> server;                                           // a thread of its own
//   loam::delegated<Account, loam::delegation::Server<>> a(server), b(server);   // several objects at one server
//   auto ticket = a.submit([](Account& account) { return account.balance; });    // in flight
//   ...
//   const long balance = ticket.get();
// Rules
//   An operation may run on another thread: thread-local variables, errno and the thread's number are that thread's.
//   It may call apply() of other objects. A call that comes back to an object that waits for it throws Nested, whichever
//   threads execute what lies between; of a ticket get() does. An operation counts as waiting for those that it has sent.
//   Two threads that ask for operations of a that call b, and of b that call a, can deadlock, as with two locks: use a
//   fixed order.
//   It must not wait for another operation of the same object, or of the same server, that somebody else has asked for.
//   An exception propagates to the client that called apply(); changes of the object are not undone.
//   In the child of a fork there are no servers: calls throw Stopped. If another thread was executing an operation at
//   the fork, the object stays busy for ever in the child: fork only while no operation is under way.
// When not: long operations (a lock costs the same), or data that threads mostly read.
#pragma once

#include "runtime/delegation/parts/executing.hpp"
#include "runtime/delegation/schemes.hpp"
#include "runtime/delegation/ticket.hpp"

#include <concepts>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace loam {

template <class T, class Scheme = delegation::CcSynch<>>
class delegated {
  // A server is shared; of every other scheme each object has its own.
  static constexpr bool kServed = requires(Scheme& scheme) { scheme.served(); };

 public:
  template <class F>
  using result_of = std::invoke_result_t<F&, T&>;

  // The object is made of `arguments`.
  template <class... Arguments>
    requires(!kServed && std::constructible_from<T, Arguments...>)
  explicit delegated(Arguments&&... arguments) : scheme_(), value_(std::forward<Arguments>(arguments)...) {}
  template <class... Arguments>
    requires(!kServed)
  explicit delegated(const delegation::Settings& settings, Arguments&&... arguments)
      : scheme_(settings), value_(std::forward<Arguments>(arguments)...) {}
  // A scheme by its name, of AnyScheme: throws std::invalid_argument if there is none.
  template <class... Arguments>
    requires(std::constructible_from<Scheme, std::string_view, const delegation::Settings&>)
  explicit delegated(delegation::Named scheme, Arguments&&... arguments)
      : scheme_(scheme.name, scheme.settings), value_(std::forward<Arguments>(arguments)...) {}
  // The server must outlive the object.
  template <class... Arguments>
    requires(kServed)
  explicit delegated(Scheme& server, Arguments&&... arguments)
      : scheme_(server), value_(std::forward<Arguments>(arguments)...) {}

  delegated(const delegated&) = delete;
  delegated& operator=(const delegated&) = delete;
  // No operation may be under way.
  ~delegated() = default;

  // f(T&), alone. Returns what it returns and throws what it throws; Nested and Stopped are the library's own.
  template <class F>
    requires std::invocable<F&, T&>
  result_of<F> apply(F&& f) {
    if constexpr (travels<F>()) {
      return send([this, f]() mutable -> result_of<F> { return run(f); });
    } else {
      return send([this, &f]() -> result_of<F> { return run(f); });
    }
  }

  // then(what f returned), or then(), on the calling thread, after the operation; returns what `then` returns.
  template <class F, class Then>
  auto apply_then(F&& f, Then&& then) {
    if constexpr (std::is_void_v<result_of<F>>) {
      apply(f);
      return then();
    } else {
      return then(apply(f));
    }
  }

  // Sends a copy of f and returns at once; ticket.get() waits. A combining scheme or a lock has no thread that could
  // execute f meanwhile, so there the operation is done when submit() returns.
  template <class F>
    requires std::invocable<F&, T&>
  delegation::ticket<result_of<F>> submit(F f) {
    auto operation = [this, f = std::move(f)]() mutable -> result_of<F> { return run(f); };
    if constexpr (kServed) {
      if (!scheme_.served().is_executing_here()) return delegation::posted(scheme_.served(), std::move(operation));
      return delegation::answered<result_of<F>>(operation);
    } else {
      auto executed = [&]() -> result_of<F> { return scheme_.apply(operation); };
      return delegation::answered<result_of<F>>(executed);
    }
  }

  // f(T&, element) for each element, in order, as one operation. Returns the results, if there are any. The first
  // exception ends it.
  template <class Range, class F>
  auto apply_each(Range&& range, F&& f) {
    using R = std::invoke_result_t<F&, T&, decltype(*std::begin(range))>;
    return apply([&](T& value) {
      if constexpr (std::is_void_v<R>) {
        for (auto&& element : range) f(value, element);
      } else {
        std::vector<R> results;
        for (auto&& element : range) results.push_back(f(value, element));
        return results;
      }
    });
  }

  // The object itself. The caller must know that no operation is under way.
  T& unguarded() noexcept { return value_; }

 private:
  // Whether a copy of f goes with the request, beside the object's address.
  template <class F>
  static constexpr bool travels() {
    using Closure = std::remove_cvref_t<F>;
    return std::is_trivially_copyable_v<Closure> && std::is_trivially_destructible_v<Closure> &&
           sizeof(Closure) <= delegation::Operation::kPayloadBytes - sizeof(void*) &&
           alignof(Closure) <= alignof(void*);
  }

  template <class Operation>
  std::invoke_result_t<Operation&> send(Operation operation) {
    if constexpr (kServed) {
      // Another object of the server that is executing: its operations are alone as it is.
      if (scheme_.served().is_executing_here()) [[unlikely]]
        return operation();
    }
    return scheme_.apply(operation);
  }

  template <class F>
  result_of<F> run(F& f) {
    if constexpr (kServed) {
      if (busy_) throw delegation::Nested();
      const Busy busy{busy_};
      return f(value_);
    } else {
      return f(value_);
    }
  }

  struct Busy {
    explicit Busy(bool& busy) noexcept : busy_(busy) { busy_ = true; }
    ~Busy() { busy_ = false; }
    bool& busy_;
  };

  std::conditional_t<kServed, Scheme&, Scheme> scheme_;
  bool busy_ = false;  // the server executes an operation of this object; the server's own
  T value_;
};

}  // namespace loam
