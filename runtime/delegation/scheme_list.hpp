// The interface of a scheme, and a list of schemes.
#pragma once

#include "runtime/delegation/types.hpp"
#include "runtime/delegation/waiting.hpp"

#include <concepts>

namespace loam::delegation {

// One domain of mutual exclusion: apply(f) calls f() alone, on some thread, and returns or throws what f() does.
template <class S>
concept Scheme = std::constructible_from<S, const Settings&> && requires(S scheme, int (&f)()) {
  { S::kDescription } -> std::convertible_to<Description>;
  { S::kSleeps } -> std::convertible_to<bool>;  // a client that waits for long gives its processor up
  { scheme.apply(f) } -> std::same_as<int>;
};

template <template <class W> class... S>
struct SchemeList {
  static constexpr unsigned kCount = sizeof...(S);

  // call.template operator()<SchemeOf>() for each, in the order of their files' names; SchemeOf<Waiting> is the scheme.
  template <class Call>
  static void for_each(Call&& call) {
    (call.template operator()<S>(), ...);
  }
};

}  // namespace loam::delegation
