// The misuses that a heap can detect.
#pragma once

#include <cstdint>

namespace loam::heap {

enum class Fault : std::uint8_t {
  foreign,      // not a block of this heap: a stack address, another allocator's block, a large block freed twice
  interior,     // within a block, not its beginning
  double_free,  // a block that is free already
  wrong_size,   // freed with a size of another class than the block's; where guarded, with another size
  // Found by a guarded heap alone:
  write_past_end,
  write_before_start,
  use_after_free,
};

}  // namespace loam::heap
