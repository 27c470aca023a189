// Verifier: walks the whole heap while the world is stopped, and ends the program where something is wrong.
//   before a collection   every old object that refers to a young one is remembered (M3); references lead to objects
//   after one             every reference, of objects, roots and logs, leads to the start of an object that is there
//                         (O2); no object is forwarded, marked or remembered; nothing refers to the nursery
//   Cost  proportional to the heap, and a bit for each of its words.
#pragma once

#include "runtime/gc/heap.hpp"

namespace loam::gc {

class Verifier {
 public:
  explicit Verifier(Heap& heap);
  ~Verifier();
  void before_collection();
  void after_collection();

 private:
  void note_starts();
  bool is_start(const Object* object) const noexcept;
  void check_descriptor(const Object& object) const;
  void check_object(Object& object, bool before);
  void check_roots(bool before);
  void check_target(const Object* target, const char* from, bool before) const;
  void for_each_old(void (Verifier::*check)(Object&, bool), bool before);

  Heap& heap_;
  std::size_t words_;
  std::uint64_t* starts_;  // a bit for each word of the old half
};

}  // namespace loam::gc
