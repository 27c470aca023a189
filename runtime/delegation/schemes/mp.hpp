// mp: a thread of its own executes everything; each client has a line for requests and one for answers.
//   Source      Petrovic, Ropars, Schiper: "On the performance of delegation over cache-coherent shared memory", ICDCN
//               2015: the server that it starts from. Reconstructed from the abstract and from paper 001.
//   Guarantees  round robin over clients; D1 to D3.   Cost  four transfers of lines in a round trip.
//   When not    request and answer fit into one line: server takes two transfers.
//   Orders      lines.A: parts/two_lines.hpp; server.A, server.B: parts/served.hpp.
#pragma once

#include "runtime/delegation/parts/two_lines.hpp"

namespace loam::delegation {

template <Waiting W = SpinThenSleep>
class Mp : public ByServer<TwoLines<W, false>> {
 public:
  static constexpr Description kDescription{.name = "mp",
                                            .summary = "a dedicated thread; request and answer in a line each",
                                            .paper = "MP-Server, ICDCN 2015",
                                            .guarantees = "mutual exclusion; round robin over clients",
                                            .means = Means::server};
  static constexpr bool kSleeps = W::kSleeps;

  using ByServer<TwoLines<W, false>>::ByServer;
};

}  // namespace loam::delegation
