// Operation: a function call that another thread may execute, in 48 bytes.
//   If a closure has at most 40 bytes and may be copied as bytes, the operation contains it, and later its result or
//   exception. So client and executor exchange only the cache line of the operation. A larger closure stays in the
//   client's frame, which does not return before the operation is done; the operation then contains its address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace loam::delegation {

// How an operation ended. result_bytes: of what stands in the payload.
struct Outcome {
  bool threw;
  std::uint8_t result_bytes;
};

struct Operation {
  static constexpr std::size_t kPayloadBytes = 40;
  using Run = Outcome (*)(Operation&) noexcept;

  Outcome execute() noexcept { return run(*this); }

  Run run;
  alignas(std::uint64_t) std::byte payload[kPayloadBytes];
};
static_assert(sizeof(Operation) == 48, "next to it in a cache line: a link, a state, a sleeper's mark");

// How a call of `F` becomes an operation and its result comes back.
//   Call<F> call(f); call.write(operation); ...; return call.take(threw, operation.payload);
// kResultBytes: the largest result that the scheme brings back by value.
template <class F, std::size_t kResultBytes = Operation::kPayloadBytes>
class Call {
 public:
  using Result = std::invoke_result_t<F&>;

  explicit Call(F& f) noexcept : f_(f) {}

  void write(Operation& operation) noexcept {
    if constexpr (kByValue) {
      operation.run = [](Operation& o) noexcept { return run(*std::launder(reinterpret_cast<F*>(o.payload)), o); };
      // Bytes, since F may have no assignment; a copied closure is a new object of the payload.
      std::memcpy(operation.payload, static_cast<const void*>(std::addressof(f_)), sizeof(F));
    } else {
      operation.run = [](Operation& o) noexcept {
        Call* call;
        std::memcpy(&call, o.payload, sizeof call);
        return call->run_here();
      };
      Call* const self = this;
      std::memcpy(operation.payload, &self, sizeof self);
    }
  }

  // payload: where the scheme brought the result. Returns what `f` returned or throws what it threw.
  Result take(bool threw, std::byte* payload) {
    if constexpr (kByValue) {
      return take_by_value(threw, payload);
    } else {
      if (threw) [[unlikely]]
        std::rethrow_exception(std::move(exception_));
      if constexpr (std::is_reference_v<Result>) {
        return static_cast<Result>(*result_.address);
      } else if constexpr (!std::is_void_v<Result>) {
        const Destroyed<Result> guard{&result_.value};
        return std::move(result_.value);
      }
    }
  }

  // Whether all of it travels in the operation: then what has become of `f` does not matter.
  static constexpr bool is_by_value() noexcept { return kByValue; }
  static Result take_by_value(bool threw, std::byte* payload) {
    static_assert(kByValue);
    if (threw) [[unlikely]] {
      auto* const stored = std::launder(reinterpret_cast<std::exception_ptr*>(payload));
      const std::exception_ptr exception = std::move(*stored);
      std::destroy_at(stored);
      std::rethrow_exception(exception);
    }
    if constexpr (std::is_reference_v<Result>) {
      std::remove_reference_t<Result>* address;
      std::memcpy(&address, payload, sizeof address);
      return static_cast<Result>(*address);
    } else if constexpr (!std::is_void_v<Result>) {
      return *std::launder(reinterpret_cast<Result*>(payload));
    }
  }

 private:
  template <class T>
  struct Destroyed {
    ~Destroyed() { std::destroy_at(object); }
    T* object;
  };
  struct Nothing {};
  template <class T>
  union Room {
    Room() noexcept {}
    ~Room() {}
    T value;
  };
  template <class T>
  struct Address {
    T* address;
  };
  template <class T>
  static auto room_for() {
    if constexpr (std::is_void_v<T>)
      return std::type_identity<Nothing>{};
    else if constexpr (std::is_reference_v<T>)
      return std::type_identity<Address<std::remove_reference_t<T>>>{};
    else
      return std::type_identity<Room<T>>{};
  }
  template <class T>
  static constexpr bool comes_back_by_value() {
    if constexpr (std::is_void_v<T>)
      return true;
    else if constexpr (std::is_reference_v<T>)
      return sizeof(void*) <= kResultBytes;
    else
      return std::is_trivially_copyable_v<T> && sizeof(T) <= kResultBytes && alignof(T) <= alignof(std::uint64_t);
  }
  static constexpr bool kByValue = std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
                                   sizeof(F) <= Operation::kPayloadBytes && alignof(F) <= alignof(std::uint64_t) &&
                                   comes_back_by_value<Result>();

  // Runs a copy of the closure that lies in the payload, whose place the result then takes.
  static Outcome run(F& inside, Operation& operation) noexcept {
    F f(inside);
    try {
      if constexpr (std::is_void_v<Result>) {
        f();
        return {false, 0};
      } else if constexpr (std::is_reference_v<Result>) {
        auto* const address = std::addressof(f());
        std::memcpy(operation.payload, &address, sizeof address);
        return {false, sizeof address};
      } else {
        ::new (operation.payload) Result(f());
        return {false, sizeof(Result)};
      }
    } catch (...) {
      ::new (operation.payload) std::exception_ptr(std::current_exception());
      return {true, sizeof(std::exception_ptr)};
    }
  }

  Outcome run_here() noexcept {
    try {
      if constexpr (std::is_void_v<Result>)
        f_();
      else if constexpr (std::is_reference_v<Result>)
        result_.address = std::addressof(f_());
      else
        ::new (&result_.value) Result(f_());
      return {false, 0};
    } catch (...) {
      exception_ = std::current_exception();
      return {true, 0};
    }
  }

  using Kept = typename decltype(room_for<Result>())::type;
  struct Empty {};

  F& f_;
  [[no_unique_address]] std::conditional_t<kByValue, Empty, Kept> result_{};
  [[no_unique_address]] std::conditional_t<kByValue, Empty, std::exception_ptr> exception_{};
};

}  // namespace loam::delegation
