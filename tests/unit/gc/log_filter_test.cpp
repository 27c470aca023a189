// Which duplicates the filters keep out of the logs.
#include "tests/harness/logs.hpp"

#include <gtest/gtest.h>
#include <stdexcept>

namespace loam::tests {
namespace {

using gc::atomically;
using gc::Local;
using gc::Transaction;
using gc::TxSettings;

TEST(ObjectLogs, FiltersKeepDuplicatesOut) {
  struct Row {
    bool hash, bitmap, locals;
    std::size_t entries;  // of ten reads, ten writes of an old object, ten writes of a new one
  };
  // Without a filter: 10 reads, then 1 update and 10 undos; the same for the new object, which gets an entry if the
  // filter of local objects is on.
  for (const Row row : {Row{false, false, false, 10 + 11 + 11}, Row{true, false, false, 1 + 2 + 2},
                        Row{false, true, false, 10 + 2 + 2}, Row{false, false, true, 10 + 11 + 1}}) {
    TxSettings settings = plain_logs();
    settings.hash = row.hash;
    settings.bitmap = row.bitmap;
    settings.locals = row.locals;
    LogFixture f(settings);
    Local<Cell> old(f.mutator, make_cell(f.mutator, 1));
    atomically(f.tx, [&](Transaction& t) {
      for (int i = 0; i < 10; ++i) t.read(old, &Cell::number);
      for (std::uint64_t i = 0; i < 10; ++i) t.write(old, &Cell::number, i);
      Local<Cell> fresh(f.mutator, t.create<Cell>());
      for (std::uint64_t i = 0; i < 10; ++i) t.write(fresh, &Cell::number, i);
      EXPECT_EQ(t.entries(), row.entries) << row.hash << row.bitmap << row.locals;
    });
  }
}

// Each transaction logs its reads, whatever the transaction before it has logged.
TEST(ObjectLogs, TheTableForgetsWhenATransactionEnds) {
  TxSettings settings = plain_logs();
  settings.hash = true;
  LogFixture f(settings);
  Local<Cell> cell(f.mutator, make_cell(f.mutator, 1));
  for (unsigned i = 0; i < 3; ++i)
    atomically(f.tx, [&](Transaction& t) {
      t.read(cell, &Cell::number);
      t.read(cell, &Cell::number);
      EXPECT_EQ(t.entries(), 1u);
    });
}

// The bitmap covers 128 words; further ones are logged each time.
TEST(ObjectLogs, WordsBeyondTheBitmapAreLoggedEachTime) {
  TxSettings settings = plain_logs();
  settings.bitmap = true;
  LogFixture f(settings);
  using Words = gc::ValueArray<std::uint64_t>;
  Local<Words> words(f.mutator, f.mutator.allocate_array<Words>(300));
  EXPECT_THROW(atomically(f.tx,
                          [&](Transaction& t) {
                            for (const std::size_t index : {0u, 124u, 125u, 299u})
                              for (std::uint64_t i = 1; i <= 5; ++i) t.write_at(words, index, i);
                            // 24 bytes of header and length: words 0 to 124 are among the first 128.
                            EXPECT_EQ(t.entries(), 1u + 1 + 1 + 5 + 5);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(words->at<gc::Value<std::uint64_t>>(i).slot().load(), 0u);
}

TEST(ObjectLogs, SmallValuesAreUndoneWithoutTheirNeighboursOfOtherWords) {
  LogFixture f(plain_logs());
  using Bytes = gc::ValueArray<std::uint8_t>;
  Local<Bytes> bytes(f.mutator, f.mutator.allocate_array<Bytes>(20));
  for (std::size_t i = 0; i < 20; ++i) bytes->at<gc::Value<std::uint8_t>>(i).init(static_cast<std::uint8_t>(i));
  EXPECT_THROW(atomically(f.tx,
                          [&](Transaction& t) {
                            for (std::size_t i = 0; i < 20; i += 3) t.write_at(bytes, i, 200);
                            throw std::runtime_error("no");
                          }),
               std::runtime_error);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(bytes->at<gc::Value<std::uint8_t>>(i).slot().load(), i);
}

}  // namespace
}  // namespace loam::tests
