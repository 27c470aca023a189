// What a fork does with the heaps of a process. Before it, the threads of all heaps stop, as for a collection, so that the
// child's heaps are as they are at safepoints. In the child only the thread that has forked is left: the Mutators of the
// others are forgotten, their transactions undone and their roots dropped. Their objects are garbage there.
//   When not  A fork waits for the threads of all heaps. One that blocks outside of a Mutator::Native blocks the fork.
#pragma once

namespace loam::gc {

class Heap;

namespace forks {

void add(Heap& heap);
void remove(Heap& heap) noexcept;

}  // namespace forks
}  // namespace loam::gc
