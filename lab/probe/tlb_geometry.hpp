// tlb_geometry: the translation buffers of this processor, as it tells them itself.
#pragma once

#include "tlb.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace loam::tlb {

struct Geometry {
  Shapes shapes;
  const char* source;
};

// Those of Intel's Skylake, and by number of entries near to what AMD and ARM have built since.
inline constexpr Geometry kAssumed{{{64, 4}, {32, 4}, {1536, 12}}, "assumed: those of Skylake"};

#if defined(__x86_64__)
namespace detail {

struct Registers {
  unsigned a, b, c, d;
};

inline Registers ask(unsigned leaf, unsigned subleaf) noexcept {
  Registers r{};
  __cpuid_count(leaf, subleaf, r.a, r.b, r.c, r.d);
  return r;
}

// Intel's leaf 24: one entry for each buffer.
inline bool intel(Shapes& into) noexcept {
  enum : unsigned { kData = 1, kShared = 3, kLoads = 4 };
  for (unsigned at = 0, last = 0; at <= last; ++at) {
    const Registers r = ask(24, at);
    if (at == 0) last = r.a;
    const unsigned type = r.d & 31, level = r.d >> 5 & 7;
    const Shape shape{(r.b >> 16) * r.c, r.b >> 16};
    if (!shape.possible()) continue;
    const bool small = r.b & 1, large = r.b & 2;
    if (level == 2 && type == kShared && small) into.second = shape;
    if (level != 1 || (type != kData && type != kLoads)) continue;
    if (small) into.first_small = shape;
    if (large) into.first_large = shape;
  }
  return true;
}

// AMD's leaves 0x80000005 and 0x80000006: an upper half for data, of pages of 2 MiB in eax and of 4 KiB in ebx.
inline bool amd(Shapes& into) noexcept {
  constexpr unsigned kWaysOf[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};
  const auto first = [](unsigned r) noexcept {
    const unsigned entries = r >> 16 & 255, ways = r >> 24;
    return Shape{entries, ways == 255 ? entries : ways};
  };
  const Registers l1 = ask(0x80000005, 0), l2 = ask(0x80000006, 0);
  const unsigned entries = l2.b >> 16 & 4095, code = l2.b >> 28;
  into = {first(l1.b), first(l1.a), {entries, code == 15 ? entries : kWaysOf[code]}};
  return true;
}

}  // namespace detail
#endif

inline Geometry of_this_processor() noexcept {
#if defined(__x86_64__)
  Geometry geometry{{}, ""};
  const unsigned vendor = detail::ask(0, 0).b;
  constexpr unsigned kIntel = 0x756E6547, kAmd = 0x68747541;  // "Genu", "Auth"
  if (vendor == kIntel && __get_cpuid_max(0, nullptr) >= 24 && detail::intel(geometry.shapes))
    geometry.source = "cpuid leaf 24";
  if (vendor == kAmd && __get_cpuid_max(0x80000000, nullptr) >= 0x80000006 && detail::amd(geometry.shapes))
    geometry.source = "cpuid leaves 0x80000005 and 0x80000006";
  const Shapes& s = geometry.shapes;
  if (s.first_small.possible() && s.first_large.possible() && s.second.possible()) return geometry;
#endif
  return kAssumed;
}

}  // namespace loam::tlb
