// ticket<R>: the answer to an operation that may still be in flight.
//   It belongs to the thread that submitted: only that thread may move, ask or destroy it. One that is destroyed before
//   its answer was taken waits for it.
#pragma once

#include "runtime/base/check.hpp"
#include "runtime/delegation/parts/served.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace loam::delegation {

template <class R>
class ticket {
 public:
  ticket(ticket&& other) noexcept : flight_(std::exchange(other.flight_, nullptr)) {}
  ticket& operator=(ticket&& other) noexcept {
    std::swap(flight_, other.flight_);
    return *this;
  }
  ~ticket() {
    if (flight_ == nullptr) return;
    flight_->check_thread();
    flight_->abandon();
    delete flight_;
  }

  // Whether get() would return at once.
  bool ready() const {
    flight_->check_thread();
    return flight_->ready();
  }

  // Waits. Returns what the operation returned or throws what it threw. Once.
  R get() {
    LOAM_CHECK(flight_ != nullptr, "ticket: its answer was taken already");
    flight_->check_thread();
    const std::unique_ptr<Flight> flight(std::exchange(flight_, nullptr));
    return flight->get();
  }

  // What a scheme keeps of a request in flight.
  class Flight {
   public:
    virtual ~Flight() = default;
    virtual bool ready() = 0;
    virtual R get() = 0;
    virtual void abandon() noexcept = 0;
    void check_thread() const { LOAM_CHECK(thread_ == &mark, "ticket: it belongs to the thread that submitted"); }

   private:
    inline static thread_local constinit char mark = 0;
    const char* const thread_ = &mark;
  };

  explicit ticket(Flight* flight) noexcept : flight_(flight) {}

 private:
  Flight* flight_;
};

// An answer that is there.
template <class R, class F>
ticket<R> answered(F& f) {
  class Done final : public ticket<R>::Flight {
   public:
    explicit Done(F& f) {
      try {
        if constexpr (std::is_void_v<R>)
          f();
        else if constexpr (std::is_reference_v<R>)
          value_.emplace(&f());
        else
          value_.emplace(f());
      } catch (...) {
        exception_ = std::current_exception();
      }
    }
    bool ready() override { return true; }
    R get() override {
      if (exception_) std::rethrow_exception(exception_);
      if constexpr (std::is_reference_v<R>)
        return static_cast<R>(**value_);
      else if constexpr (!std::is_void_v<R>)
        return std::move(*value_);
    }
    void abandon() noexcept override {}

   private:
    struct Nothing {};
    using Kept [[maybe_unused]] =
        std::conditional_t<std::is_void_v<R>, Nothing,
                           std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, R>>;
    std::optional<Kept> value_;
    std::exception_ptr exception_;
  };
  return ticket<R>(new Done(f));
}

// Posts `f`, of which the ticket keeps a copy, to a server.
template <class Answers, class F>
ticket<std::invoke_result_t<F&>> posted_as_it_is(Served<Answers>& served, F f) {
  using R = std::invoke_result_t<F&>;
  class Posted final : public ticket<R>::Flight {
   public:
    Posted(Served<Answers>& served, F&& f) : served_(served), f_(std::move(f)), call_(f_), cell_(served.lend()) {
      call_.write(cell_.operation);
      try {
        number_ = served.post(cell_);
      } catch (...) {
        served.give_back(cell_);
        throw;
      }
    }
    bool ready() override { return served_.is_answered(cell_, number_); }
    R get() override {
      const Answer answer = served_.await(cell_, number_);
      const GiveBack give_back{served_, cell_};
      return call_.take(answer.threw, answer.payload);
    }
    void abandon() noexcept override {
      try {
        get();
      } catch (...) {  // nobody wants to know
      }
    }

   private:
    struct GiveBack {
      ~GiveBack() { served.give_back(cell); }
      Served<Answers>& served;
      Cell& cell;
    };

    Served<Answers>& served_;
    F f_;
    Call<F, Served<Answers>::kResultBytes> call_;
    Cell& cell_;
    std::uint32_t number_ = 0;
  };
  return ticket<R>(new Posted(served, std::move(f)));
}

// The same, also inside an operation. That one counts as waiting for `f`, whenever it takes the answer: else whether a cycle
// is refused would depend on who comes first.
template <class Answers, class F>
ticket<std::invoke_result_t<F&>> posted(Served<Answers>& served, F f) {
  using R = std::invoke_result_t<F&>;
  if (!Executing::anything()) [[likely]]
    return posted_as_it_is(served, std::move(f));
  if (Executing::waits_for_this_thread(&served)) {
    auto refused = []() -> R { throw Nested(); };
    return answered<R>(refused);
  }
  return posted_as_it_is(served, SentFrom<F>(Executing::Copy(), std::move(f)));
}

}  // namespace loam::delegation
