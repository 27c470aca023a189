# Instruction counts of the transactional memory's steps, of its C interface, of the library behind -fgnu-tm, of malloc and free, of
# delegation, of the managed heap; run by the tests here under valgrind.
# find_path looks again where it found nothing: set-up may bring valgrind after the first configuring.
find_path(LOAM_CALLGRIND_FOLDER valgrind/callgrind.h)
if(LOAM_CALLGRIND_FOLDER)
  add_executable(loam-golden-tm-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/tm_paths.cpp")
  target_link_libraries(loam-golden-tm-paths PRIVATE loam-tm)
  target_compile_options(loam-golden-tm-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})

  foreach(algorithm IN ITEMS norec etl-wb dctl)
    set(target loam-golden-c-${algorithm}-paths)
    add_executable(${target} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/c_paths.cpp")
    target_link_libraries(${target} PRIVATE loam-tm)
    target_compile_definitions(${target} PRIVATE LOAM_TM_ALGORITHM=${algorithm})
    target_compile_options(${target} PRIVATE ${LOAM_WORKLOAD_FLAGS})
  endforeach()

  # Linked to no allocator: what is counted is preloaded.
  add_executable(loam-golden-stock-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/stock_paths.cpp")
  target_link_libraries(loam-golden-stock-paths PRIVATE loam-tm)
  target_compile_options(loam-golden-stock-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})

  add_executable(loam-golden-malloc-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/malloc_paths.c")
  target_link_libraries(loam-golden-malloc-paths PRIVATE loam-flags)
  target_compile_options(loam-golden-malloc-paths PRIVATE -O2 -fno-builtin)

  add_executable(loam-golden-delegation-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/delegation_paths.cpp")
  target_link_libraries(loam-golden-delegation-paths PRIVATE loam-delegation)
  target_compile_options(loam-golden-delegation-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})

  add_executable(loam-golden-gc-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/gc_paths.cpp")
  target_link_libraries(loam-golden-gc-paths PRIVATE loam-gc)
  target_compile_options(loam-golden-gc-paths PRIVATE ${LOAM_WORKLOAD_FLAGS})

  if(TARGET loam-itm)
    add_executable(loam-golden-itm-paths EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/golden/itm_paths.cpp")
    target_link_libraries(loam-golden-itm-paths PRIVATE loam-itm loam-flags)
    target_compile_options(loam-golden-itm-paths PRIVATE ${LOAM_WORKLOAD_FLAGS} ${LOAM_GNU_TM_FLAGS})
  endif()
endif()
