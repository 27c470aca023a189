// Which memory a thread was using when its clock ran out, from the instruction and the registers of that moment.
//   How      An interrupt comes after a slow instruction. So the operand of the instruction before the sampled one counts
//            first; if it has none, that of the next instructions, as far as nothing wrote the registers that it needs.
//            An operand on the thread's own stack counts only where there is no other: such an access is seldom slow.
//   When not operands relative to the segment registers (a thread's own variables), gathers and scatters.
#pragma once

#include <Zydis/Zydis.h>
#include <asm/perf_regs.h>

#include <cstddef>
#include <cstdint>

#include "functions.hpp"
#include "memory.hpp"

namespace loam::interposer::sharing {

inline constexpr std::size_t kRegisters = PERF_REG_X86_64_MAX;

// As the kernel numbers them.
struct Registers {
  std::uint64_t value[kRegisters];
  std::uint64_t ip() const noexcept { return value[PERF_REG_X86_IP]; }
  std::uint64_t sp() const noexcept { return value[PERF_REG_X86_SP]; }
};

// bytes: 0 where there is no access
struct Access {
  std::uintptr_t address = 0, ip = 0;
  std::size_t bytes = 0;
  bool writes = false;
};

// The kernel's number of a register of 64 bits; -1: it has none, or the stack pointer, whose operands are the thread's own.
inline int number_of(ZydisRegister name) noexcept {
  switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name)) {
    case ZYDIS_REGISTER_RAX:
      return PERF_REG_X86_AX;
    case ZYDIS_REGISTER_RBX:
      return PERF_REG_X86_BX;
    case ZYDIS_REGISTER_RCX:
      return PERF_REG_X86_CX;
    case ZYDIS_REGISTER_RDX:
      return PERF_REG_X86_DX;
    case ZYDIS_REGISTER_RSI:
      return PERF_REG_X86_SI;
    case ZYDIS_REGISTER_RDI:
      return PERF_REG_X86_DI;
    case ZYDIS_REGISTER_RBP:
      return PERF_REG_X86_BP;
    case ZYDIS_REGISTER_RSP:
      return PERF_REG_X86_SP;
    case ZYDIS_REGISTER_R8:
      return PERF_REG_X86_R8;
    case ZYDIS_REGISTER_R9:
      return PERF_REG_X86_R9;
    case ZYDIS_REGISTER_R10:
      return PERF_REG_X86_R10;
    case ZYDIS_REGISTER_R11:
      return PERF_REG_X86_R11;
    case ZYDIS_REGISTER_R12:
      return PERF_REG_X86_R12;
    case ZYDIS_REGISTER_R13:
      return PERF_REG_X86_R13;
    case ZYDIS_REGISTER_R14:
      return PERF_REG_X86_R14;
    case ZYDIS_REGISTER_R15:
      return PERF_REG_X86_R15;
    default:
      return -1;
  }
}

class Decoder {
 public:
  // Places for which the instruction before is kept. A prime: loops of like code do not meet in one slot.
  static constexpr std::size_t kPlaces = 1021;

  Decoder() noexcept { ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

  // The access on which a thread with these registers most likely waited; with 0 bytes where there is none.
  Access find(const Registers& registers) noexcept {
    Access own_stack, access;
    code_.forget();  // a compiler at run time may have written other code there since
    if (before(registers, access, own_stack) || after(registers, access, own_stack)) return access;
    return own_stack;
  }

 private:
  static constexpr std::size_t kSteps = 12;        // instructions looked at from the sampled one on
  static constexpr std::size_t kWalkBytes = 4096;  // of a function, decoded from its start
  static constexpr std::size_t kBack = 64;         // bytes before the sampled one, where that is too far or not known
  static constexpr std::uintptr_t kLowest = 65536;
  static constexpr std::uintptr_t kStackBelow = 4096, kStackAbove = std::uintptr_t{1} << 20;

  struct Instruction {
    ZydisDecodedInstruction is;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  };

  bool decode(std::uintptr_t at, Instruction& into) noexcept {
    std::size_t bytes = 0;
    const std::uint8_t* code = code_.at(at, bytes);
    return code != nullptr && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, code, bytes, &into.is, into.operands));
  }

  // Its length; 0 where there is none.
  std::size_t length(std::uintptr_t at) noexcept {
    std::size_t bytes = 0;
    const std::uint8_t* code = code_.at(at, bytes);
    ZydisDecodedInstruction instruction;
    return code != nullptr && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder_, nullptr, code, bytes, &instruction))
               ? instruction.length
               : 0;
  }

  // The start of the instruction that ends at an address, decoded from another one; 0: the decoding does not lead there.
  std::uintptr_t last_before(std::uintptr_t from, std::uintptr_t ip) noexcept {
    std::uintptr_t last = 0;
    for (std::uintptr_t at = from; at < ip;) {
      const std::size_t bytes = length(at);
      if (bytes == 0) return 0;
      last = at, at += bytes;
      if (at > ip) return 0;
    }
    return last;
  }

  // Decoding finds its way after some instructions wherever it begins: what most beginnings lead to is right.
  std::uintptr_t voted_before(std::uintptr_t ip) noexcept {
    std::uintptr_t candidate = 0;
    int votes = 0;
    for (std::size_t back = kBack; back > kBack - 16; --back) {
      const std::uintptr_t start = last_before(ip - back, ip);
      if (start == 0) continue;
      if (votes == 0) candidate = start;
      votes += start == candidate ? 1 : -1;
    }
    return votes > 2 ? candidate : 0;
  }

  // The start of the instruction before the sampled one; 0 where it is not known.
  std::uintptr_t previous(std::uintptr_t ip) noexcept {
    const std::uintptr_t start = function_start(ip);
    if (start == ip) return 0;
    return start != 0 && ip - start <= kWalkBytes ? last_before(start, ip) : voted_before(ip);
  }

  // The same from what was found before, where the code has unwind tables, which a program does not write as it runs.
  std::uintptr_t known_previous(std::uintptr_t ip) noexcept {
    const std::uintptr_t tables = unwind_tables(ip);
    Place& known = places_[ip % kPlaces];
    if (tables == 0) return previous(ip);
    if (known.ip != ip || known.tables != tables || known.previous == 0) known = {ip, tables, previous(ip)};
    return known.previous;
  }

  bool before(const Registers& registers, Access& access, Access& own_stack) noexcept {
    const std::uintptr_t ip = registers.ip(), at = known_previous(ip);
    if (at == 0) return false;
    Instruction one;
    if (!decode(at, one) || at + one.is.length != ip) {  // other code was loaded in the place of what was found
      places_[ip % kPlaces] = {};
      return false;
    }
    // What ends in a jump did not lead here.
    if (one.is.meta.category == ZYDIS_CATEGORY_UNCOND_BR || one.is.meta.category == ZYDIS_CATEGORY_RET ||
        one.is.meta.category == ZYDIS_CATEGORY_CALL)
      return false;
    return operand(one, at, registers, written_by(one), access, own_stack);
  }

  bool after(const Registers& registers, Access& access, Access& own_stack) noexcept {
    std::uintptr_t ip = registers.ip();
    std::uint32_t written = 0;
    for (std::size_t step = 0; step < kSteps; ++step) {
      Instruction one;
      if (!decode(ip, one)) return false;
      if (operand(one, ip, registers, written, access, own_stack)) return true;
      written |= written_by(one);
      const std::uintptr_t next = ip + one.is.length;
      switch (one.is.meta.category) {
        case ZYDIS_CATEGORY_COND_BR:
        case ZYDIS_CATEGORY_UNCOND_BR: {
          if (one.operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
          const std::uintptr_t target = next + static_cast<std::uintptr_t>(one.operands[0].imm.value.s);
          // Backwards, a branch closes a loop, and most often is taken.
          ip = one.is.meta.category == ZYDIS_CATEGORY_UNCOND_BR || target < ip ? target : next;
          break;
        }
        case ZYDIS_CATEGORY_CALL:
        case ZYDIS_CATEGORY_RET:
        case ZYDIS_CATEGORY_SYSCALL:
          return false;
        default:
          ip = next;
      }
    }
    return false;
  }

  // A bit for each register that an instruction writes.
  static std::uint32_t written_by(const Instruction& one) noexcept {
    std::uint32_t written = 0;
    for (std::size_t at = 0; at < one.is.operand_count; ++at) {
      const ZydisDecodedOperand& o = one.operands[at];
      if (o.type != ZYDIS_OPERAND_TYPE_REGISTER || (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
      if (const int number = number_of(o.reg.value); number >= 0) written |= std::uint32_t{1} << number;
    }
    return written;
  }

  // The first operand in memory; one on the thread's own stack goes to own_stack, and is not what was looked for.
  static bool operand(const Instruction& one, std::uintptr_t at, const Registers& registers, std::uint32_t written,
                      Access& access, Access& own_stack) noexcept {
    if (one.is.mnemonic == ZYDIS_MNEMONIC_LEA || one.is.mnemonic == ZYDIS_MNEMONIC_NOP) return false;
    for (std::size_t i = 0; i < one.is.operand_count; ++i) {
      const ZydisDecodedOperand& o = one.operands[i];
      if (o.type != ZYDIS_OPERAND_TYPE_MEMORY || o.mem.type != ZYDIS_MEMOP_TYPE_MEM) continue;
      if (o.mem.segment == ZYDIS_REGISTER_FS || o.mem.segment == ZYDIS_REGISTER_GS) continue;
      // What a call, a return, a push has there is nobody's data.
      if (o.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && o.mem.base == ZYDIS_REGISTER_RSP) continue;
      std::uintptr_t address = o.mem.disp.has_displacement ? static_cast<std::uintptr_t>(o.mem.disp.value) : 0;
      if (o.mem.base == ZYDIS_REGISTER_RIP)
        address += at + one.is.length;
      else if (o.mem.base != ZYDIS_REGISTER_NONE && !add(address, o.mem.base, 1, registers, written))
        continue;
      if (o.mem.index != ZYDIS_REGISTER_NONE && !add(address, o.mem.index, o.mem.scale, registers, written)) continue;
      if (address < kLowest || address >> 47 != 0) continue;
      const Access operand_access{address, at, o.size / 8U == 0 ? 1 : o.size / 8U,
                                  (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0};
      const bool own = address - (registers.sp() - kStackBelow) < kStackBelow + kStackAbove;
      if (!own) {
        access = operand_access;
        return true;
      }
      if (own_stack.bytes == 0) own_stack = operand_access;
    }
    return false;
  }

  static bool add(std::uintptr_t& address, ZydisRegister name, std::size_t scale, const Registers& registers,
                  std::uint32_t written) noexcept {
    const int number = number_of(name);
    if (number < 0 || (written >> number & 1) != 0) return false;
    address += registers.value[number] * scale;
    return true;
  }

  // To find an instruction takes longer than to watch its operand: the search in the tables, and the way from the start of the
  // function. A program is sampled at few places again and again.
  struct Place {
    std::uintptr_t ip = 0, tables = 0, previous = 0;
  };

  ZydisDecoder decoder_;
  Code code_;
  Place places_[kPlaces] = {};
};

}  // namespace loam::interposer::sharing
