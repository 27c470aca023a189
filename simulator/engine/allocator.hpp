// The allocator that serves the simulated process.
#pragma once

namespace loam::simulator {

// Whether malloc lies in an object that calls no hooks: libc's, or one that was preloaded as it comes from its package.
bool allocator_is_native();

// Whether the object that this address lies in calls hooks.
bool calls_hooks(const void* address);

}  // namespace loam::simulator
