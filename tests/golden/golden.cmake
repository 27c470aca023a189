# Instruction counts of the transactional memory's steps, and of malloc and free; run by the tests here under valgrind.
include(CheckIncludeFile)
check_include_file(valgrind/callgrind.h LOAM_HAVE_CALLGRIND)
if(LOAM_HAVE_CALLGRIND)
  add_executable(loam-golden-tm-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/tm_paths.cpp")
  target_link_libraries(loam-golden-tm-paths PRIVATE loam-tm)
  target_compile_options(loam-golden-tm-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})

  # Linked to no allocator: what is counted is preloaded.
  add_executable(loam-golden-malloc-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/malloc_paths.c")
  target_link_libraries(loam-golden-malloc-paths PRIVATE loam-flags)
  target_compile_options(loam-golden-malloc-paths PRIVATE -O2 -fno-builtin)
endif()
