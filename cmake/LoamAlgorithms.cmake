# The transactional algorithms are the files of runtime/tm/algorithms/. This makes LOAM_GENERATED/runtime/tm/algorithms.hpp,
# which names all of them as loam::tm::Algorithms, and lists them in LOAM_ALGORITHM_HEADERS.
# Also a script: cmake -DLOAM_SOURCE=. -DLOAM_GENERATED=FOLDER -P cmake/LoamAlgorithms.cmake
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(LOAM_SOURCE "${CMAKE_SOURCE_DIR}")
  set(LOAM_GENERATED "${CMAKE_BINARY_DIR}/generated")
  set(on_change CONFIGURE_DEPENDS)
endif()

# loam_algorithm_class(STEM RESULT): the class in the file of this name, TwoPhase in two_phase.hpp.
function(loam_algorithm_class stem result)
  string(REPLACE "_" ";" parts "${stem}")
  set(class "")
  foreach(part IN LISTS parts)
    string(SUBSTRING "${part}" 0 1 first)
    string(SUBSTRING "${part}" 1 -1 rest)
    string(TOUPPER "${first}" first)
    string(APPEND class "${first}${rest}")
  endforeach()
  set(${result} "${class}" PARENT_SCOPE)
endfunction()

# loam_class_list(FOLDER INCLUDES CLASSES HEADER...): the #include lines of headers in a folder below the root, and their
# classes, separated by commas.
function(loam_class_list folder includes classes)
  set(lines "")
  set(names "")
  foreach(header IN LISTS ARGN)
    get_filename_component(stem "${header}" NAME_WE)
    loam_algorithm_class(${stem} class)
    string(APPEND lines "#include \"${folder}/${stem}.hpp\"\n")
    list(APPEND names "${class}")
  endforeach()
  string(REPLACE ";" ", " names "${names}")
  set(${includes} "${lines}" PARENT_SCOPE)
  set(${classes} "${names}" PARENT_SCOPE)
endfunction()

file(GLOB LOAM_ALGORITHM_HEADERS ${on_change} "${LOAM_SOURCE}/runtime/tm/algorithms/*.hpp")
loam_class_list(runtime/tm/algorithms includes classes ${LOAM_ALGORITHM_HEADERS})
file(CONFIGURE OUTPUT "${LOAM_GENERATED}/runtime/tm/algorithms.hpp" CONTENT "// Made by cmake/LoamAlgorithms.cmake: all algorithms.
#pragma once

#include \"runtime/tm/algorithm_list.hpp\"
${includes}
namespace loam::tm {

using Algorithms = AlgorithmList<${classes}>;

}  // namespace loam::tm
")
