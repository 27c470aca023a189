# Options and flags shared by every target.
#   LOAM_PRESET    name of the configure preset, recorded in every result
#   LOAM_CHECKED   assertions, structure walks, test points and shrunk limits
#   LOAM_SANITIZE  value of -fsanitize=, empty for none
#   LOAM_SIMULATED the thread sanitizer's instrumentation, with the simulator in place of its library
#   LOAM_COUNT_BLOCKS instructions between accesses are counted too (LoamBlockCosts.cmake)
#   LOAM_MARCH     value of -march= (the lab measures where it builds; valgrind 3.19 cannot run AVX-512,
#                  so "native" would lose the instruction counts)
set(LOAM_PRESET "custom" CACHE STRING "name of the configure preset")
option(LOAM_CHECKED "assertions, structure walks, test points and shrunk limits" OFF)
set(LOAM_SANITIZE "" CACHE STRING "value of -fsanitize=")
option(LOAM_SIMULATED "instrumented for the simulated multicore" OFF)
option(LOAM_COUNT_BLOCKS "count the instructions between simulated accesses as well" OFF)
if(NOT DEFINED LOAM_MARCH)
  set(march "")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    include(CheckCSourceRuns)
    check_c_source_runs("int main(void) { return !(__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"bmi2\")); }"
                        LOAM_CPU_IS_X86_64_V3)
    if(LOAM_CPU_IS_X86_64_V3)
      set(march "x86-64-v3")
    else()
      set(march "x86-64")
    endif()
  endif()
  set(LOAM_MARCH "${march}" CACHE STRING "value of -march=")
endif()

add_library(loam-flags INTERFACE)
target_include_directories(loam-flags INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(loam-flags INTERFACE -Wall -Wextra -Werror -g1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # stable_sort of libstdc++ 12 calls what the library deprecates; clang 19 warns of it, system header or not.
  target_compile_options(loam-flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()
if(LOAM_MARCH)
  target_compile_options(loam-flags INTERFACE -march=${LOAM_MARCH})
endif()
if(LOAM_CHECKED)
  target_compile_definitions(loam-flags INTERFACE LOAM_CHECKED=1)
endif()
if(LOAM_SANITIZE)
  string(REPLACE "," ";" parts "${LOAM_SANITIZE}")
  # LOAM_INSTRUMENTED: the compiler adds calls that watch memory accesses and jumps, so what it cannot see is written in
  # plain C++. LOAM_TSAN and LOAM_ASAN are for what concerns one of these tools alone.
  target_compile_definitions(loam-flags INTERFACE LOAM_INSTRUMENTED=1)
  # Not for a target that says LOAM_UNINSTRUMENTED: GCC 12 has no transactional memory with -fsanitize=address.
  target_compile_options(loam-flags INTERFACE
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOAM_UNINSTRUMENTED>>>:-fsanitize=${LOAM_SANITIZE};-fno-sanitize-recover=all>")
  # A target that says otherwise keeps its word: these options come after its own.
  target_compile_options(loam-flags INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOAM_OPTIMISATION>>>:-O1>)
  target_link_options(loam-flags INTERFACE -fsanitize=${LOAM_SANITIZE})
  if("thread" IN_LIST parts)
    # The runtime has no standalone fence; GCC still warns about the ones inside libstdc++'s shared_ptr.
    target_compile_options(loam-flags INTERFACE -Wno-tsan)
    target_compile_definitions(loam-flags INTERFACE LOAM_TSAN=1)
  endif()
  if("address" IN_LIST parts)
    target_compile_definitions(loam-flags INTERFACE LOAM_ASAN=1)
  endif()
endif()
if(LOAM_SIMULATED)
  # Compiled with the instrumentation, linked without the sanitizer's library: LoamSimulated.cmake has another.
  target_compile_definitions(loam-flags INTERFACE LOAM_INSTRUMENTED=1 LOAM_SIMULATED=1)
  set(LOAM_SIMULATED_FLAGS -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -Wno-tsan
    -fno-builtin-memset -fno-builtin-memcpy -fno-builtin-memmove)
  target_compile_options(loam-flags INTERFACE ${LOAM_SIMULATED_FLAGS})
  target_link_libraries(loam-flags INTERFACE $<LINK_ONLY:$<BUILD_INTERFACE:loam-simulator>>)
  # Calls from instrumented code only. libc's and the C++ library's own calls stay as they are.
  set(loam_wrapped memcpy memmove memset)
  set(loam_wrapped_allocation malloc calloc realloc aligned_alloc memalign posix_memalign free
      _Znwm _Znam _ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t _ZnwmSt11align_val_t _ZnamSt11align_val_t
      _ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t _ZdlPv _ZdaPv _ZdlPvm _ZdaPvm
      _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t _ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t)
  set(LOAM_SIMULATED_WRAPPED ${loam_wrapped} ${loam_wrapped_allocation})  # for ./loam simulate, as the flags above
  list(TRANSFORM LOAM_SIMULATED_WRAPPED PREPEND "-Wl,--wrap=")
  list(TRANSFORM loam_wrapped PREPEND "LINKER:--wrap=")
  list(TRANSFORM loam_wrapped_allocation PREPEND "LINKER:--wrap=")
  # libloam-malloc.so defines the latter itself.
  target_link_options(loam-flags INTERFACE ${loam_wrapped}
    "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOAM_DEFINES_MALLOC>>>:${loam_wrapped_allocation}>")
  if(LOAM_COUNT_BLOCKS)
    include(LoamBlockCosts)
    loam_block_costs(loam-flags)
  endif()
endif()
find_package(Threads REQUIRED)
target_link_libraries(loam-flags INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
