#include "runtime/tm/algorithms/norec.hpp"

namespace loam::tm {

constinit Sequence norec_sequence;

}  // namespace loam::tm
