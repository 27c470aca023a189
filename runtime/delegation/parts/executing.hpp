// The domains that wait until the calling thread returns: first those of which the thread itself is executing
// operations, the innermost first; then those of the operations that asked for these, on other threads. An operation that
// asks one of them would wait for itself. An address identifies a domain.
//   An operation that asks from inside another one carries the frames of its thread with it (OnBehalf). The thread that
//   executes it links them to its own, so that a cycle is found however many threads it goes through. An operation that
//   nobody's operation asked for carries nothing.
#pragma once

#include "runtime/delegation/operation.hpp"
#include "runtime/delegation/types.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace loam::delegation {

class Executing {
 public:
  struct Frame {
    const void* domain;
    const Frame* outer;
  };

  explicit Executing(const void* domain) noexcept : frame_{domain, innermost_} { innermost_ = &frame_; }
  ~Executing() { innermost_ = frame_.outer; }
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;

  static bool anything() noexcept { return innermost_ != nullptr; }
  static const Frame* innermost() noexcept { return innermost_; }

  // Whether the calling thread itself does.
  static bool here(const void* domain) noexcept {
    for (const Frame* at = innermost_; at != nullptr; at = at->outer)
      if (at->domain == domain) return true;
    return false;
  }

  // Throws Nested if the domain waits for the calling thread.
  static void refuse(const void* domain) {
    if (innermost_ != nullptr) [[unlikely]]
      refuse_inside(domain);
  }
  static bool waits_for_this_thread(const void* domain) noexcept { return waits(innermost_, domain); }

  // The frames of another thread, or a copy of them: while this object lives they count as outer ones of this thread.
  class Linked {
   public:
    explicit Linked(const Frame* asking) noexcept : link_{{&kLink, innermost_}, asking} { innermost_ = &link_; }
    ~Linked() { innermost_ = link_.outer; }
    Linked(const Linked&) = delete;
    Linked& operator=(const Linked&) = delete;

   private:
    friend class Executing;
    struct Link : Frame {
      const Frame* asking;
    };
    static constexpr char kLink = 0;  // its address says that a frame is a link

    const Link link_;
  };

  // All that waits for the calling thread now, for an operation that outlives the frames.
  class Copy {
   public:
    Copy() {
      add(innermost_);
      for (std::size_t i = 1; i < frames_.size(); ++i) frames_[i - 1].outer = &frames_[i];
    }
    Copy(Copy&&) noexcept = default;  // the frames stay where they are
    const Frame* innermost() const noexcept { return frames_.data(); }

   private:
    void add(const Frame* at) {
      for (; at != nullptr; at = at->outer) {
        if (at->domain == &Linked::kLink)
          add(static_cast<const Linked::Link*>(at)->asking);
        else
          frames_.push_back({at->domain, nullptr});
      }
    }
    std::vector<Frame> frames_;
  };

 private:
  [[gnu::cold, gnu::noinline]] static void refuse_inside(const void* domain) {
    if (waits(innermost_, domain)) throw Nested();
  }
  static bool waits(const Frame* at, const void* domain) noexcept {
    for (; at != nullptr; at = at->outer) {
      if (at->domain == domain) return true;
      if (at->domain == &Linked::kLink && waits(static_cast<const Linked::Link*>(at)->asking, domain)) return true;
    }
    return false;
  }

  const Frame frame_;
  inline static thread_local constinit const Frame* innermost_ = nullptr;
};

// An operation that is asked for inside another one, which waits for it. One type for all, so that a scheme's apply() is
// compiled only once more for it.
class OnBehalf {
 public:
  // Both stay with the client; a copy of this object may travel.
  OnBehalf(Operation& operation, Outcome& outcome) noexcept
      : operation_(operation), outcome_(outcome), asking_(Executing::innermost()) {}

  void operator()() noexcept {
    // Its client executes it itself. A link would only count the same frames twice.
    if (Executing::innermost()->outer == asking_) {
      outcome_ = operation_.execute();
      return;
    }
    const Executing::Linked linked(asking_);
    outcome_ = operation_.execute();
  }

 private:
  Operation& operation_;
  Outcome& outcome_;
  const Executing::Frame* const asking_;
};

// The same of an operation for which the other one need not wait.
template <class F>
class SentFrom {
 public:
  SentFrom(Executing::Copy&& asking, F&& f) : asking_(std::move(asking)), f_(std::move(f)) {}

  std::invoke_result_t<F&> operator()() {
    const Executing::Linked linked(asking_.innermost());
    return f_();
  }

 private:
  Executing::Copy asking_;
  F f_;
};

// Every apply() of a scheme in which another thread may execute begins with the question whether it is called inside an
// operation, unless the operation says so itself: it is an OnBehalf.   Cost  a thread-local load.
template <class F>
inline constexpr bool kIsOnBehalf = std::is_same_v<std::remove_reference_t<F>, OnBehalf>;

template <class Scheme>
[[gnu::cold, gnu::noinline]] void apply_carried(Scheme& scheme, OnBehalf& on_behalf) {
  Executing::refuse(&scheme);
  scheme.apply(on_behalf);
}

// scheme.apply() of f on behalf of the operations that wait for it. Throws Nested if `scheme` is one of their domains.
//   Inlined, so that f may stay in registers where nothing waits.
template <class Scheme, class F>
[[gnu::always_inline]] inline std::invoke_result_t<F&> apply_on_behalf(Scheme& scheme, F& f) {
  Call<F> call(f);
  Operation operation;
  call.write(operation);
  Outcome outcome;
  OnBehalf on_behalf(operation, outcome);
  apply_carried(scheme, on_behalf);
  return call.take(outcome.threw, operation.payload);
}

}  // namespace loam::delegation
