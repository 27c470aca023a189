# loam-paths.json: the one file through which the lab finds executables and libraries.
string(JOIN " " flags ${LOAM_WORKLOAD_FLAGS} -march=${LOAM_MARCH})
set(executables "")
foreach(target IN LISTS LOAM_WORKLOAD_TARGETS)
  string(REPLACE "loam-workload-" "" name "${target}")
  list(APPEND executables "    \"${name}\": \"$<TARGET_FILE:${target}>\"")
endforeach()
list(JOIN executables ",\n" executables)
set(libraries "")
foreach(entry IN LISTS LOAM_LAB_LIBRARIES)
  string(REGEX MATCH "^([^=]*)=(.*)$" _ "${entry}")
  list(APPEND libraries "    \"${CMAKE_MATCH_1}\": \"$<TARGET_FILE:${CMAKE_MATCH_2}>\"")
endforeach()
list(JOIN libraries ",\n" libraries)
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/loam-paths.json" CONTENT
"{
  \"schema\": 1,
  \"preset\": \"${LOAM_PRESET}\",
  \"root\": \"${CMAKE_SOURCE_DIR}\",
  \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\",
  \"flags\": \"${flags}\",
  \"executables\": {
${executables}
  },
  \"libraries\": {
${libraries}
  }
}
")
