// etl-wb-hash: etl-wb for tables in which stripes a power of two apart have different records (mapping.hpp: hash).
//   Source      the algorithm: etl_wb.hpp; multiplicative hashing: Knuth, The Art of Computer Programming 3, 6.4.
//   Guarantees  as etl-wb.
//   Conflicts   as etl-wb, without those of stripes that only the table brings together.
//   Cost        an instruction more for each access than etl-wb, which is why it is an algorithm of its own
//               (docs/adr/0010).
//   When not    threads whose memory does not alias: `./loam explain` counts "other stripe".
#pragma once

#include "runtime/tm/algorithms/etl_wb.hpp"

namespace loam::tm {

template <bool kBlame>
struct EtlWbHash : EtlWbWith<kBlame, CountingClock, HashMapped> {
  static constexpr AlgorithmDescription kDescription{
      .name = "etl-wb-hash",
      .summary = "etl-wb over a hashed table: stripes a power of two apart do not share a record",
      .paper = "TinySTM, PPoPP 2008",
      .guarantees = "opacity; publication safe"};
  static constexpr bool kKnowsHash = true;
};

}  // namespace loam::tm
