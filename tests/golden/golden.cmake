# Instruction counts of the transactional memory's steps; run by test_instruction_counts.py under valgrind.
include(CheckIncludeFile)
check_include_file(valgrind/callgrind.h LOAM_HAVE_CALLGRIND)
if(LOAM_HAVE_CALLGRIND)
  add_executable(loam-golden-tm-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/tm_paths.cpp")
  target_link_libraries(loam-golden-tm-paths PRIVATE loam-tm)
  target_compile_options(loam-golden-tm-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})
endif()
