# Each tests/{unit,model,stress,fuzz}/**/X_test.cpp is one GoogleTest executable X_test; the folder is its ctest label.
# Those of tests/unit/malloc are linked with libloam-malloc.so, are named malloc_X_test, and are left out where a sanitizer
# brings its own malloc. Those of tests/unit/workloads start workload executables; they are labelled `program` as well. The target loam-tests is
# every other test: the sanitizer suites build it alone.
if(CMAKE_CROSSCOMPILING)
  # GoogleTest of that processor is compiled here, from the sources in Debian's package googletest.
  set(loam_gtest_sources /usr/src/googletest/googletest)
  if(NOT EXISTS "${loam_gtest_sources}")
    message(FATAL_ERROR "tests for ${CMAKE_SYSTEM_PROCESSOR}: ${loam_gtest_sources} is missing (install googletest, or set "
                        "BUILD_TESTING=OFF)")
  endif()
  add_subdirectory("${loam_gtest_sources}" "${CMAKE_BINARY_DIR}/gtest" EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()

# What is compiled for another processor runs under an emulator. An emulator gets what it is to preload as an option.
set(loam_test_launcher ${CMAKE_CROSSCOMPILING_EMULATOR})
set(loam_preload env)
set(loam_test_limit_s 300)
if(loam_test_launcher)
  set(loam_test_limit_s 1200)
  set(loam_preload ${loam_test_launcher} -E)
endif()
# GCC 12's thread sanitizer does not start where the kernel randomises more than 28 bits of addresses.
if("${LOAM_SANITIZE}" MATCHES "thread")
  find_program(LOAM_SETARCH setarch)
  if(LOAM_SETARCH)
    execute_process(COMMAND "${LOAM_SETARCH}" -R true RESULT_VARIABLE refused ERROR_QUIET)
    if(refused EQUAL 0)
      set(loam_test_launcher "${LOAM_SETARCH}" -R)
    endif()
  endif()
endif()

file(GLOB_RECURSE loam_test_sources CONFIGURE_DEPENDS
     "${CMAKE_SOURCE_DIR}/tests/unit/*_test.cpp" "${CMAKE_SOURCE_DIR}/tests/model/*_test.cpp" "${CMAKE_SOURCE_DIR}/tests/stress/*_test.cpp"
     "${CMAKE_SOURCE_DIR}/tests/fuzz/*_test.cpp")
# Transactions are compiled for every algorithm, which takes long and is what most of the time goes to. So, unless all is
# asked for, sanitizers see some designs (locks with a redo log, values; for threads write-through and visible readers
# with an undo log as well) over fewer mappings (tests/harness/tm_variants.hpp), unit tests are not optimised, and the
# algorithms are compiled once for all tests (tests/harness/erased_driver.hpp; not for those that say LOAM_TEST_DIRECT).
set(loam_test_definitions "")
set(loam_test_optimisation -O1)
if("$ENV{LOAM_TEST_ALL}" STREQUAL "")
  set(loam_test_optimisation -O0)
  set(undo_logs "")
  if("${LOAM_SANITIZE}" MATCHES "thread")
    set(undo_logs ",::loam::tm::EtlWt,::loam::tm::TwoPhase")
  endif()
  if(NOT "${LOAM_SANITIZE}" STREQUAL "")
    set(loam_test_definitions "LOAM_TEST_ALGORITHMS=::loam::tm::EtlWb,::loam::tm::Norec${undo_logs}"
        LOAM_TEST_FEW_MAPPINGS)
  endif()
else()
  set(loam_test_definitions LOAM_TEST_DIRECT)
endif()
add_custom_target(loam-tests)

# GoogleTest's main(), with a watchdog.
add_library(loam-test-main STATIC EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/harness/main.cpp")
target_link_libraries(loam-test-main PUBLIC loam-flags GTest::gtest)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  string(JOIN " " words ${CMAKE_CROSSCOMPILING_EMULATOR})
  target_compile_definitions(loam-test-main PRIVATE "LOAM_EMULATOR=\"${words}\"")
endif()

# The headers that are nobody's own, once for all tests of one optimisation and the same further libraries (a third
# argument). Not where all is asked for: a test that forgets to include what it uses is found there.
function(loam_precompile name optimisation)
  if(NOT "$ENV{LOAM_TEST_ALL}" STREQUAL "")
    return()
  endif()
  string(JOIN "" donor loam-test-headers ${optimisation} ${ARGN})
  if(NOT TARGET ${donor})
    add_executable(${donor} EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/harness/headers.cpp")
    target_link_libraries(${donor} PRIVATE loam-tm loam-structures GTest::gtest ${ARGN})
    loam_test_options(${donor} ${optimisation})
    target_precompile_headers(${donor} PRIVATE <gtest/gtest.h> <algorithm> <atomic> <functional> <string> <thread> <vector>)
  endif()
  target_precompile_headers(${name} REUSE_FROM ${donor})
endfunction()

# What tests share, once for all of one optimisation: a test that does not refer to it gets nothing of it.
function(loam_test_harness name optimisation)
  set(harness loam-test-harness${optimisation})
  if(NOT TARGET ${harness})
    add_library(${harness} STATIC EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/harness/erased_driver.cpp")
    target_link_libraries(${harness} PRIVATE loam-tm)
    # Every algorithm, also where tests run over few: some tests are about a single one.
    target_compile_options(${harness} PRIVATE -fno-builtin-malloc -fno-builtin-free ${optimisation})
    set_target_properties(${harness} PROPERTIES LOAM_OPTIMISATION ${optimisation})
  endif()
  target_link_libraries(${name} PRIVATE ${harness})
endfunction()

function(loam_test_options name optimisation)
  target_compile_options(${name} PRIVATE -fno-builtin-malloc -fno-builtin-free ${optimisation})
  target_compile_definitions(${name} PRIVATE ${loam_test_definitions})
  set_target_properties(${name} PROPERTIES LOAM_OPTIMISATION ${optimisation})
endfunction()

# The library shows the interface alone: of its own parts, a test X_test.cpp compiles runtime/malloc/X.cpp once more.
function(loam_malloc_test source)
  get_filename_component(stem "${source}" NAME_WE)
  set(name malloc_${stem})
  string(REGEX REPLACE "_test$" ".cpp" part "${CMAKE_SOURCE_DIR}/runtime/malloc/${stem}")
  if(NOT stem MATCHES "^(settings|fault|last_words|apart_sites)_test$")
    set(part "")
  endif()
  add_executable(${name} "${source}" ${part})
  target_link_libraries(${name} PRIVATE loam-malloc loam-tm loam-test-main)
  loam_test_options(${name} -O1)
  # Every call is made as written, and rules of the interface are broken on purpose.
  target_compile_options(${name} PRIVATE -fno-builtin -fno-allocation-dce -Wno-use-after-free -Wno-free-nonheap-object
                         -Wno-mismatched-new-delete -Wno-sized-deallocation)
  add_test(NAME ${name} COMMAND ${loam_test_launcher} $<TARGET_FILE:${name}>)
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT ${loam_test_limit_s})
  add_dependencies(loam-tests ${name})
endfunction()

# Those of the library behind -fgnu-tm are compiled with that, with and without optimisation, and run for each algorithm.
# In a build with a sanitizer only the library is instrumented, which makes all accesses of their transactions: GCC 12
# refuses -fgnu-tm beside -fsanitize=address. So the programs' own optimisation changes little there, and one is enough.
set(loam_itm_optimisations -O0 -O2)
# GCC 13.3 and 14.2 without optimisation: a local variable that a transaction changed keeps its value when the transaction is
# taken back, with GCC's own library, too.
if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  set(loam_itm_optimisations -O1 -O2)
endif()
if(LOAM_SANITIZE AND "$ENV{LOAM_TEST_ALL}" STREQUAL "")
  set(loam_itm_optimisations -O2)
endif()
function(loam_itm_test source)
  get_filename_component(stem "${source}" NAME_WE)
  foreach(optimisation IN LISTS loam_itm_optimisations)
    set(name itm_${stem}${optimisation})
    add_executable(${name} "${source}" $<TARGET_OBJECTS:loam-itm-counted-new>)
    target_link_libraries(${name} PRIVATE loam-itm loam-test-main)
    target_compile_options(${name} PRIVATE ${LOAM_GNU_TM_FLAGS} ${optimisation})
    set_target_properties(${name} PROPERTIES LOAM_UNINSTRUMENTED ON LOAM_OPTIMISATION ${optimisation})
    add_dependencies(loam-tests ${name})
    foreach(algorithm norec etl-wb hybrid-norec)
      add_test(NAME ${name}_${algorithm} COMMAND $<TARGET_FILE:${name}>)
      set_tests_properties(${name}_${algorithm} PROPERTIES LABELS unit TIMEOUT ${loam_test_limit_s}
                           ENVIRONMENT "LOAM_ITM_ALGORITHM=${algorithm}")
    endforeach()
  endforeach()
endfunction()
if(TARGET loam-itm)
  add_library(loam-itm-counted-new OBJECT EXCLUDE_FROM_ALL "${CMAKE_SOURCE_DIR}/tests/unit/itm/counted_new.cpp")
  target_link_libraries(loam-itm-counted-new PRIVATE loam-flags)
endif()

foreach(source IN LISTS loam_test_sources)
  get_filename_component(name "${source}" NAME_WE)
  file(RELATIVE_PATH relative "${CMAKE_SOURCE_DIR}/tests" "${source}")
  string(REGEX REPLACE "/.*" "" label "${relative}")
  if("${relative}" MATCHES "^unit/itm/")
    if(TARGET loam-itm)
      loam_itm_test("${source}")
    endif()
    continue()
  endif()
  if("${relative}" MATCHES "^unit/malloc/")
    if(TARGET loam-malloc)
      loam_malloc_test("${source}")
    endif()
    continue()
  endif()
  if("${relative}" MATCHES "sharing_access_test" AND NOT TARGET loam-sharing)
    continue()  # its decoder is not installed
  endif()
  add_executable(${name} "${source}")
  if("${label}" STREQUAL "unit" OR "${LOAM_SANITIZE}" MATCHES "address")
    set(optimisation ${loam_test_optimisation})
  else()
    set(optimisation -O1)  # instantiating takes long, running does not
  endif()
  loam_test_harness(${name} ${optimisation})
  target_link_libraries(${name} PRIVATE loam-heap loam-tm loam-delegation loam-gc loam-structures loam-test-main)
  if("${relative}" MATCHES "sharing_access_test")
    target_include_directories(${name} SYSTEM PRIVATE "${LOAM_ZYDIS_HEADER}")
    target_link_libraries(${name} PRIVATE "${LOAM_ZYDIS}")
  endif()
  if("${relative}" MATCHES "^unit/simulator/")
    target_link_libraries(${name} PRIVATE loam-simulator-model)
  endif()
  loam_test_options(${name} ${optimisation})
  add_test(NAME ${name} COMMAND ${loam_test_launcher} $<TARGET_FILE:${name}>)
  if("${relative}" MATCHES "^unit/workloads/")
    list(APPEND label program)
    target_link_libraries(${name} PRIVATE loam-workload-harness)
    target_compile_definitions(${name} PRIVATE LOAM_SOURCE_ROOT="${CMAKE_SOURCE_DIR}")
    loam_precompile(${name} ${optimisation} loam-workload-harness)
  else()
    loam_precompile(${name} ${optimisation})
    add_dependencies(loam-tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${loam_test_limit_s})
endforeach()

target_compile_definitions(signature_test PRIVATE LOAM_SOURCE_ROOT="${CMAKE_SOURCE_DIR}")
target_compile_definitions(design_test PRIVATE LOAM_DESIGN_PRESETS="${CMAKE_SOURCE_DIR}/allocators/design")
target_compile_definitions(heap_corpus_test PRIVATE LOAM_FUZZ_CORPUS="${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/heap")

# Linked to no allocator: ours and its peers are preloaded.
add_executable(fork_storm "${CMAKE_SOURCE_DIR}/tests/stress/fork_storm.cpp")
target_link_libraries(fork_storm PRIVATE loam-flags)
target_compile_options(fork_storm PRIVATE -O1 -fno-builtin)
if(TARGET loam-malloc)
  add_test(NAME fork_storm COMMAND ${loam_preload} LD_PRELOAD=$<TARGET_FILE:loam-malloc> $<TARGET_FILE:fork_storm> 500)
  set_tests_properties(fork_storm PROPERTIES LABELS stress TIMEOUT ${loam_test_limit_s})
  add_dependencies(loam-tests fork_storm loam-malloc)
endif()

# The same for forks that wait for somebody: name, its arguments in a short form; plain and hardened.
function(loam_fork_program name)
  add_executable(${name} "${CMAKE_SOURCE_DIR}/tests/stress/${name}.cpp")
  target_link_libraries(${name} PRIVATE loam-flags)
  target_compile_options(${name} PRIVATE -O1 -fno-builtin)
  if(NOT TARGET loam-malloc)
    return()
  endif()
  add_dependencies(loam-tests ${name} loam-malloc)
  foreach(arguments IN LISTS ARGN)
    foreach(hardened 0 1)
      string(REPLACE " " "_" case "${name}_${arguments}_hardened_${hardened}")
      separate_arguments(words UNIX_COMMAND "${arguments}")
      add_test(NAME ${case} COMMAND ${loam_preload} LD_PRELOAD=$<TARGET_FILE:loam-malloc> $<TARGET_FILE:${name}> ${words})
      set_tests_properties(${case} PROPERTIES LABELS stress TIMEOUT 120 ENVIRONMENT "LOAM_MALLOC_HARDENED=${hardened}")
    endforeach()
  endforeach()
endfunction()
loam_fork_program(fork_beside_stdio 300)
loam_fork_program(fork_in_handler "1 1000 0" "1 1000 2")

# What allocation_test preloads, to see that the workloads find faults.
add_library(loam-faulty-malloc MODULE "${CMAKE_SOURCE_DIR}/tests/unit/workloads/faulty_malloc.c")
set_target_properties(loam-faulty-malloc PROPERTIES PREFIX "")
target_compile_options(loam-faulty-malloc PRIVATE -Wall -Wextra -Werror -O1 -fno-builtin)
add_dependencies(allocation_test loam-faulty-malloc)

# What malloc_thread_orders_test opens and closes.
if(TARGET loam-malloc)
  add_library(loam-unloaded-library MODULE "${CMAKE_SOURCE_DIR}/tests/unit/malloc/unloaded_library.cpp")
  set_target_properties(loam-unloaded-library PROPERTIES PREFIX "")
  target_link_libraries(loam-unloaded-library PRIVATE loam-flags)
  add_dependencies(malloc_thread_orders_test loam-unloaded-library)
endif()

# A synchronisation that uses all that the harness offers, for contract_test.
add_executable(loam-contract "${CMAKE_SOURCE_DIR}/workloads/harness/main.cpp"
               "${CMAKE_SOURCE_DIR}/workloads/transactional/intset.cpp"
               "${CMAKE_SOURCE_DIR}/tests/unit/workloads/contract/workloads.cpp")
target_link_libraries(loam-contract PRIVATE loam-workload-harness)
target_compile_definitions(loam-contract PRIVATE LOAM_SYNC_HEADER="tests/unit/workloads/contract/sync.hpp")
target_link_options(loam-contract PRIVATE -Wl,--build-id=sha1)
add_dependencies(contract_test loam-contract)

include("${CMAKE_SOURCE_DIR}/tests/golden/golden.cmake")

# The short form of tests/emulated/run.py: what is written for the processor and what reaches it through the layers; and
# what depends on the length of pages, which runs once more with longer ones.
if(CMAKE_CROSSCOMPILING)
  set(loam_pages_tests pages_test large_test guarded_test sampled_test untouched_pages_test malloc_conformance_test)
  set(loam_short_tests ${loam_pages_tests} machine_test c_dead_frames_test c_keep_test schemes_test object_transaction_test)
  add_custom_target(loam-short-tests DEPENDS ${loam_short_tests})
  set_property(TEST ${loam_short_tests} APPEND PROPERTY LABELS short)
  set_property(TEST ${loam_pages_tests} APPEND PROPERTY LABELS pages)
endif()
