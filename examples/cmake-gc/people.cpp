// A list in a managed heap, to which two threads add at its front, each in transactions.
#include <loam/gc.hpp>

#include <cstdio>
#include <thread>

namespace gc = loam::gc;

struct Person : gc::Object {
  gc::Ref<Person> next;
  gc::Value<int> age;
  static gc::Descriptor describe() { return gc::describe<Person>("person", &Person::next); }
};

int main() {
  gc::Heap heap({.memory_bytes = 4 << 20});
  gc::Transactions transactions(heap, {});
  gc::Global<Person> everybody(heap);  // the list's head
  {
    gc::Mutator mutator(heap);
    everybody.set(mutator.allocate<Person>());
  }
  const auto add = [&](int first) {
    gc::Mutator mutator(heap);
    gc::Transaction tx(transactions, mutator);
    gc::Local<Person> head(mutator, everybody.get()), person(mutator), next(mutator);
    for (int age = first; age < 1000; age += 2)
      gc::atomically(tx, [&](auto& t) {
        next = t.read(head, &Person::next);
        person = t.template create<Person>();
        person->age.init(age);
        person->next.init(next.get());
        t.write(head, &Person::next, person);
      });
  };
  std::thread odd([&] { add(1); });
  add(0);
  odd.join();

  gc::Mutator mutator(heap);
  mutator.collect();
  int count = 0;
  for (gc::Local<Person> at(mutator, everybody.get()); (at = mutator.read(at, &Person::next)); ++count) {
  }
  std::printf("%d people, %zu bytes live\n", count, heap.live_bytes());
  return count == 1000 ? 0 : 1;
}
