// init(): the first values of a new object, wherever it is born.
#include "tests/harness/managed.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace loam::tests {
namespace {

using gc::Heap;
using gc::Local;
using gc::Mutator;
using Cells = gc::RefArray<Cell>;

constexpr std::size_t kLeastLarge = (gc::kLargeBytes - sizeof(gc::Array)) / sizeof(void*);  // elements

Cell* element(const Local<Cells>& array, std::size_t index) {
  return static_cast<Cell*>(array->at<gc::Ref<Cell>>(index).slot().load());
}

gc::Settings roomy() {
  return {.memory_bytes = std::size_t{4} << 20, .nursery_bytes = std::size_t{128} << 10, .buffer_bytes = 4096};
}

TEST(FirstValues, OfArraysOfAnySizeAreKept) {
  for (const std::size_t length : {std::size_t{1}, kLeastLarge - 1, kLeastLarge, kLeastLarge + 1, 3 * kLeastLarge}) {
    Heap heap(roomy());
    Mutator mutator(heap);
    Local<Cell> cell(mutator, make_list(mutator, 4711, 3));
    Local<Cells> array(mutator, mutator.allocate_array<Cells>(length));
    array->at<gc::Ref<Cell>>(0).init(cell.get());
    array->at<gc::Ref<Cell>>(length - 1).init(cell.get());
    cell = nullptr;
    churn(mutator, 3);
    EXPECT_EQ(numbers_of(mutator, element(array, 0)), counted(4711, 3)) << length;
    EXPECT_EQ(element(array, length - 1), element(array, 0)) << length;
  }
}

// Two of them before the first collection, and values that are stored with and without a barrier.
TEST(FirstValues, OfSeveralLargeArraysAreKept) {
  Heap heap(roomy());
  Mutator mutator(heap);
  Local<Cell> cell(mutator, make_cell(mutator, 1));
  Local<Cells> first(mutator, mutator.allocate_array<Cells>(kLeastLarge));
  first->at<gc::Ref<Cell>>(0).init(cell.get());
  cell = make_cell(mutator, 2);
  Local<Cells> second(mutator, mutator.allocate_array<Cells>(kLeastLarge));
  second->at<gc::Ref<Cell>>(0).init(cell.get());
  mutator.store(first.get(), first->at<gc::Ref<Cell>>(1), cell.get());
  cell = nullptr;
  churn(mutator, 2);
  EXPECT_EQ(element(first, 0)->number.slot().load(), 1u);
  EXPECT_EQ(element(second, 0)->number.slot().load(), 2u);
  EXPECT_EQ(element(first, 1), element(second, 0));
}

TEST(FirstValues, OfALargeArraySurviveTheEndOfTheirThread) {
  Heap heap(roomy());
  gc::Global<Cells> kept(heap);
  {
    Mutator mutator(heap);
    Local<Cell> cell(mutator, make_cell(mutator, 7));
    Local<Cells> array(mutator, mutator.allocate_array<Cells>(kLeastLarge));
    array->at<gc::Ref<Cell>>(5).init(cell.get());
    kept.set(array.get());
  }
  Mutator mutator(heap);
  churn(mutator, 2);
  Local<Cells> array(mutator, kept.get());
  EXPECT_EQ(element(array, 5)->number.slot().load(), 7u);
}

TEST(FirstValues, OfAFinalizableObjectAreKept) {
  Heap heap(roomy());
  Mutator mutator(heap);
  Local<Cell> cell(mutator, make_cell(mutator, 9));
  Local<Cell> holder(mutator, mutator.allocate_finalizable<Cell>([](gc::Object*) {}));
  holder->next.init(cell.get());
  holder->number.init(8);
  cell = nullptr;
  churn(mutator, 3);
  EXPECT_EQ(numbers_of(mutator, holder.get()), counted(8, 2));
}

// An attempt that gives its memory back leaves no reference to it, although no undo entry names the element.
TEST(FirstValues, OfALargeArrayOfAnAttemptThatAborts) {
  Heap heap(roomy());
  gc::TxSettings settings;
  settings.nursery = true;
  gc::Transactions all(heap, settings);
  Mutator mutator(heap);
  gc::Transaction tx(all, mutator);
  gc::Global<Cells> outside(heap);  // not part of the transaction
  EXPECT_THROW(gc::atomically(tx,
                              [&](gc::Transaction& t) {
                                Local<Cell> cell(mutator, t.create<Cell>());
                                Local<Cells> array(mutator, t.create_array<Cells>(kLeastLarge));
                                array->at<gc::Ref<Cell>>(3).init(cell.get());
                                outside.set(array.get());
                                throw std::runtime_error("no");
                              }),
               std::runtime_error);
  Local<Cells> array(mutator, outside.get());
  EXPECT_EQ(element(array, 3), nullptr);
  churn(mutator, 2);
}

#ifdef LOAM_CHECKED
TEST(FirstValuesDeathTest, IntoALargeArrayThatIsNotNewAreFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Heap heap(roomy());
        Mutator mutator(heap);
        Local<Cells> array(mutator, mutator.allocate_array<Cells>(kLeastLarge));
        mutator.collect(false);
        array->at<gc::Ref<Cell>>(0).init(make_cell(mutator, 2));
        mutator.collect(false);
      },
      "M3: .* is not remembered .stored by init.. into an object that is not new");
}
#endif

}  // namespace
}  // namespace loam::tests
