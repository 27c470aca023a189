# LOAM_GNU_TM_FLAGS: how code with transactions of the language is compiled, by GCC alone: the workloads' peer `libitm`, the tests
# of runtime/itm, its instruction counts. docs/libitm.md tells users of each option that avoids an error of the compiler.
set(LOAM_GNU_TM_FLAGS -fgnu-tm)
# GCC 12 hoists a load that the plain and the transactional branch of a function share above the transaction's begin.
list(APPEND LOAM_GNU_TM_FLAGS -fno-tree-pre -fno-code-hoisting)
# GCC takes the begin of a transaction for a setjmp() and warns of each loop around one; it restores such variables itself.
list(APPEND LOAM_GNU_TM_FLAGS -Wno-clobbered)
# The transactions may run in hardware, where the instruction VZEROUPPER aborts each of them. GCC 14 writes one before a commit.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  list(APPEND LOAM_GNU_TM_FLAGS -mno-vzeroupper)
endif()
# GCC 14.2 refuses the destructor of a std::vector beside transactions ("inlining failed in call to always_inline").
if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
  list(APPEND LOAM_GNU_TM_FLAGS -fno-ipa-pure-const)
endif()
