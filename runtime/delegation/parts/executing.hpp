// The domains of which the calling thread is executing operations, the innermost first. An address identifies a domain.
#pragma once

#include "runtime/delegation/types.hpp"

namespace loam::delegation {

class Executing {
 public:
  explicit Executing(const void* domain) noexcept : domain_(domain), outer_(innermost_) { innermost_ = this; }
  ~Executing() { innermost_ = outer_; }
  Executing(const Executing&) = delete;
  Executing& operator=(const Executing&) = delete;

  static bool contains(const void* domain) noexcept {
    for (const Executing* at = innermost_; at != nullptr; at = at->outer_)
      if (at->domain_ == domain) return true;
    return false;
  }

  // Throws Nested if it does.
  static void refuse(const void* domain) {
    if (innermost_ != nullptr && contains(domain)) [[unlikely]]
      throw Nested();
  }

 private:
  const void* const domain_;
  const Executing* const outer_;
  inline static thread_local constinit const Executing* innermost_ = nullptr;
};

}  // namespace loam::delegation
