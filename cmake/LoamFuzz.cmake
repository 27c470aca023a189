# heap_fuzz: sequences of operations on the heap, found by clang's libFuzzer. LOAM_FUZZ: the preset `fuzz`.
#   LOAM_FUZZ_OVERLAY  a folder whose runtime/... stands before that of the tree: heap_fuzz_planted, with a planted fault
option(LOAM_FUZZ "fuzz targets; needs clang" OFF)
set(LOAM_FUZZ_OVERLAY "" CACHE PATH "headers with a planted fault")
if(NOT LOAM_FUZZ)
  return()
endif()

function(loam_fuzz_target name)
  add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/fuzz/heap_fuzz.cpp")
  target_include_directories(${name} BEFORE PRIVATE ${ARGN})
  target_link_libraries(${name} PRIVATE loam-heap)
  target_compile_options(${name} PRIVATE -O1 -fno-builtin-malloc -fno-builtin-free -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

loam_fuzz_target(heap_fuzz)
if(LOAM_FUZZ_OVERLAY)
  loam_fuzz_target(heap_fuzz_planted "${LOAM_FUZZ_OVERLAY}")
  target_compile_options(heap_fuzz_planted PRIVATE -w)  # a fault leaves things unused
endif()
