// Which memory a thread was using, from machine code and registers: the operand before the sampled instruction first.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "lab/interposer/sharing/access.hpp"

namespace loam::interposer::sharing {
namespace {

constexpr std::uintptr_t kStack = 0x7FFD00010000;

// Registers of which each has a value of its own.
Registers at(std::uintptr_t ip) {
  Registers registers{};
  for (std::size_t n = 0; n < kRegisters; ++n) registers.value[n] = 0x10000000 * (n + 1);
  registers.value[PERF_REG_X86_SP] = kStack;
  registers.value[PERF_REG_X86_IP] = ip;
  return registers;
}

// Code among instructions that do nothing, and registers of which each has a value of its own.
class Sampled : public ::testing::Test {
 protected:
  static constexpr std::size_t kStart = 128, kBytes = 512;

  Sampled() { std::fill(code_, code_ + kBytes, std::uint8_t{0x90}); }  // nop

  // The access when the sampled instruction is the first of `after`, which follow those of `before`.
  Access sample(std::initializer_list<std::uint8_t> before, std::initializer_list<std::uint8_t> after) {
    std::copy(before.begin(), before.end(), code_ + kStart);
    ip_ = reinterpret_cast<std::uintptr_t>(code_ + kStart + before.size());
    std::copy(after.begin(), after.end(), code_ + kStart + before.size());
    registers_.value[PERF_REG_X86_IP] = ip_;
    return Decoder().find(registers_);
  }

  std::uint64_t value(int number) const { return registers_.value[number]; }

  std::uint8_t code_[kBytes];
  Registers registers_ = at(0);
  std::uintptr_t ip_ = 0;
};

TEST_F(Sampled, AfterASlowInstructionItsOperandIsTaken) {
  const Access access = sample({0xF0, 0x48, 0x83, 0x07, 0x01}, {});  // lock add qword [rdi], 1
  EXPECT_EQ(access.address, value(PERF_REG_X86_DI));
  EXPECT_EQ(access.ip, ip_ - 5);
  EXPECT_EQ(access.bytes, 8u);
  EXPECT_TRUE(access.writes);
}

TEST_F(Sampled, AnOperandWhoseRegisterTheInstructionWroteIsNotKnownAnyMore) {
  // mov rax, [rax] | mov rcx, [rbx + rdx * 8 + 16]
  const Access access = sample({0x48, 0x8B, 0x00}, {0x48, 0x8B, 0x4C, 0xD3, 0x10});
  EXPECT_EQ(access.address, value(PERF_REG_X86_BX) + 8 * value(PERF_REG_X86_DX) + 16);
  EXPECT_EQ(access.ip, ip_);
  EXPECT_FALSE(access.writes);
}

TEST_F(Sampled, NorIsOneThatAnInstructionOnTheWayWrote) {
  // | mov rbx, rsi; mov rax, [rbx]; ret
  EXPECT_EQ(sample({}, {0x48, 0x89, 0xF3, 0x48, 0x8B, 0x03, 0xC3}).bytes, 0u);
}

TEST_F(Sampled, ALoopIsClosed) {
  // mov [rdi], rax; nop | dec rsi; jne to the mov
  const Access access = sample({0x48, 0x89, 0x07, 0x90}, {0x48, 0xFF, 0xCE, 0x75, 0xF7});
  EXPECT_EQ(access.address, value(PERF_REG_X86_DI));
  EXPECT_TRUE(access.writes);
}

TEST_F(Sampled, TheOwnStackCountsOnlyWhereThereIsNothingElse) {
  // mov rax, [rsp + 8] | mov rcx, [rdi]
  EXPECT_EQ(sample({0x48, 0x8B, 0x44, 0x24, 0x08}, {0x48, 0x8B, 0x0F}).address, value(PERF_REG_X86_DI));
  // mov rax, [rsp + 8] | ret
  EXPECT_EQ(sample({0x48, 0x8B, 0x44, 0x24, 0x08}, {0xC3}).address, kStack + 8);
}

TEST_F(Sampled, AnotherThreadsStackIsMemoryLikeAnyOther) {
  registers_.value[PERF_REG_X86_DI] = kStack - 0x800000;
  EXPECT_EQ(sample({0x48, 0x89, 0x07}, {0xC3}).address, kStack - 0x800000);  // mov [rdi], rax | ret
}

TEST_F(Sampled, StaticDataIsReachedFromTheInstructionBehind) {
  const Access before = sample({0x48, 0x8B, 0x05, 0x00, 0x01, 0x00, 0x00}, {0xC3});  // mov rax, [rip + 0x100] | ret
  EXPECT_EQ(before.address, ip_ + 0x100);
  const Access after = sample({}, {0x48, 0x8B, 0x05, 0x00, 0x01, 0x00, 0x00});  // | mov rax, [rip + 0x100]
  EXPECT_EQ(after.address, ip_ + 7 + 0x100);
}

TEST_F(Sampled, CopiesOfStringsAreRead) {
  const Access access = sample({}, {0xF3, 0x48, 0xA5});  // | rep movsq
  EXPECT_TRUE(access.address == value(PERF_REG_X86_DI) || access.address == value(PERF_REG_X86_SI));
}

TEST_F(Sampled, AddressesThatAreOnlyComputedAreNoAccess) {
  EXPECT_EQ(sample({0x48, 0x8D, 0x07}, {0xC3}).bytes, 0u);  // lea rax, [rdi] | ret
}

TEST_F(Sampled, AThreadsOwnVariablesHaveNoKnownAddress) {
  // mov rax, fs:[0x28] | ret
  EXPECT_EQ(sample({0x64, 0x48, 0x8B, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00}, {0xC3}).bytes, 0u);
}

TEST_F(Sampled, WhatEndsInAJumpDidNotLeadHere) {
  EXPECT_EQ(sample({0xFF, 0x27}, {0xC3}).bytes, 0u);  // jmp [rdi] | ret
}

TEST_F(Sampled, CodeThatIsGoneIsNoTrouble) {
  registers_.value[PERF_REG_X86_IP] = 0x123456;
  EXPECT_EQ(Decoder().find(registers_).bytes, 0u);
}

[[gnu::noinline]] std::uint64_t some_function(std::uint64_t x) {
  for (int n = 0; n < 100; ++n) x = x * 31 + static_cast<std::uint64_t>(n);
  return x;
}

// A function of its own page, longer than the part that a test writes other code into. It is never called.
[[gnu::noinline, gnu::aligned(4096)]] void rewritten(volatile std::uint64_t* x) {
  x[0] = x[0] + 1;
  x[1] = x[1] + 2;
  x[2] = x[2] + 3;
  x[3] = x[3] + 4;
  x[4] = x[4] + 5;
}

// Not seen by the thread sanitizer, which has no shadow to write for an executable's own code.
[[gnu::noinline, gnu::no_sanitize("thread")]] void overwrite(std::uintptr_t start, std::size_t bytes) {
  auto* const code = reinterpret_cast<volatile std::uint8_t*>(start);
  for (std::size_t n = 0; n < bytes; n += 2) {
    code[n] = 0x8B;  // mov eax, [rdi]; no instruction begins with 07
    code[n + 1] = 0x07;
  }
}

TEST(Decoder, WhatItFoundBeforeHoldsUntilOtherCodeIsThere) {
  const auto start = reinterpret_cast<std::uintptr_t>(&rewritten);
  constexpr std::size_t kBytes = 48;
  Decoder decoder;
  std::size_t accesses = 0;
  for (int round = 0; round < 2; ++round)
    for (std::uintptr_t slot = start; slot < start + kBytes; ++slot)
      for (const std::uintptr_t ip : {slot, slot + Decoder::kPlaces}) {  // two places of one slot
        const Access again = decoder.find(at(ip)), first = Decoder().find(at(ip));
        EXPECT_EQ(again.ip, first.ip) << ip - start;
        EXPECT_EQ(again.address, first.address) << ip - start;
        accesses += again.bytes != 0 ? 1 : 0;
      }
  EXPECT_GT(accesses, 0u);

  for (std::uintptr_t ip = start; ip < start + kBytes; ++ip) decoder.find(at(ip));
  void* page = reinterpret_cast<void*>(start & ~std::uintptr_t{4095});
  ASSERT_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  overwrite(start, kBytes);
  for (std::uintptr_t ip = start; ip < start + kBytes; ++ip) {
    const Access fresh = Decoder().find(at(ip)), first = decoder.find(at(ip)), second = decoder.find(at(ip));
    // The sampled instruction itself is there; what was before it is looked for anew at the next sample.
    EXPECT_TRUE(first.bytes == 0 || first.ip == fresh.ip || first.ip == ip)
        << ip - start << ": an instruction that is gone";
    EXPECT_EQ(second.ip, fresh.ip) << ip - start;
  }
}

TEST(FunctionStart, IsThatOfTheFunctionAround) {
  const auto start = reinterpret_cast<std::uintptr_t>(&some_function);
  EXPECT_EQ(function_start(start), start);
  EXPECT_EQ(function_start(start + 5), start);
  EXPECT_NE(some_function(1), 0u);
}

TEST(FunctionStart, IsNothingWhereThereIsNoCode) {
  int here = 0;
  std::vector<char> block(100);
  EXPECT_EQ(function_start(reinterpret_cast<std::uintptr_t>(&here)), 0u);
  EXPECT_EQ(function_start(reinterpret_cast<std::uintptr_t>(block.data())), 0u);
  EXPECT_EQ(function_start(0), 0u);
}

}  // namespace
}  // namespace loam::interposer::sharing
