# loam-paths.json: the one file through which the lab finds executables and libraries.
# An executable is what is started with which arguments, the files that it consists of, and its environment; "{python}"
# stands for the Python that runs the lab.
string(JOIN " " flags ${LOAM_WORKLOAD_OPTIMISATION} ${LOAM_WORKLOAD_FLAGS} -march=${LOAM_MARCH})
set(executables "")
foreach(target IN LISTS LOAM_WORKLOAD_TARGETS)
  string(REPLACE "loam-workload-" "" name "${target}")
  set(file "\"$<TARGET_FILE:${target}>\"")
  list(APPEND executables "    \"${name}\": { \"argv\": [${file}], \"files\": [${file}], \"environment\": {} }")
endforeach()
# The same executable with our library in place of GCC's libitm. LD_BIND_NOW, because lazy binding at a first call would
# abort a hardware transaction.
if(TARGET loam-workload-libitm AND TARGET loam-itm)
  set(file "\"$<TARGET_FILE:loam-workload-libitm>\"")
  list(APPEND executables "    \"loam-itm\": { \"argv\": [${file}], \"files\": [${file}, \"$<TARGET_FILE:loam-itm>\"],
      \"environment\": { \"LD_LIBRARY_PATH\": \"$<TARGET_FILE_DIR:loam-itm>\", \"LOAM_ITM_ALGORITHM\": \"\" } }")
  list(APPEND executables "    \"loam-itm-hybrid\": { \"argv\": [${file}], \"files\": [${file}, \"$<TARGET_FILE:loam-itm>\"],
      \"environment\": { \"LD_LIBRARY_PATH\": \"$<TARGET_FILE_DIR:loam-itm>\", \"LOAM_ITM_ALGORITHM\": \"hybrid-norec\",
        \"LD_BIND_NOW\": \"1\" } }")
endif()
# Real programs: a script starts them and writes their records.
file(GLOB loam_program_files LIST_DIRECTORIES false CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/lab/loam_lab/subjects/programs/*.py"
     "${CMAKE_SOURCE_DIR}/lab/programs/*")
list(TRANSFORM loam_program_files REPLACE "(.+)" "\"\\1\"")
list(JOIN loam_program_files ", " loam_program_files)
list(APPEND executables "    \"programs\": { \"argv\": [\"{python}\", \"-m\", \"loam_lab.subjects.programs\"],
      \"files\": [${loam_program_files}], \"environment\": { \"PYTHONPATH\": \"${CMAKE_SOURCE_DIR}/lab\" } }")
# Libraries on the JVM: one per file of jvm/src/main/java/org/loam/jvm/syncs; set up when one is asked for.
file(GLOB loam_jvm_files LIST_DIRECTORIES false CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/jvm/src/main/java/org/loam/jvm/syncs/*.java")
foreach(file IN LISTS loam_jvm_files)
  cmake_path(GET file STEM name)
  string(TOLOWER "${name}" name)
  list(APPEND executables "    \"jvm-${name}\": { \"argv\": [\"{python}\", \"-m\", \"loam_lab.subjects.jvm\", \"jvm-${name}\"],
      \"files\": [\"${CMAKE_SOURCE_DIR}/.loam/jvm/target/loam-jvm.jar\", \"${CMAKE_SOURCE_DIR}/jvm/dependencies.lock\",
        \"${CMAKE_SOURCE_DIR}/.loam/jvm/describe/jvm-${name}.json\", \"${CMAKE_SOURCE_DIR}/lab/loam_lab/subjects/jvm/__main__.py\"],
      \"environment\": { \"PYTHONPATH\": \"${CMAKE_SOURCE_DIR}/lab\" } }")
endforeach()
list(JOIN executables ",\n" executables)
set(libraries "")
foreach(entry IN LISTS LOAM_LAB_LIBRARIES)
  string(REGEX MATCH "^([^=]*)=(.*)$" _ "${entry}")
  list(APPEND libraries "    \"${CMAKE_MATCH_1}\": \"$<TARGET_FILE:${CMAKE_MATCH_2}>\"")
endforeach()
list(JOIN libraries ",\n" libraries)
# How ./loam simulate compiles and links a program of the user's for a simulated machine.
set(simulated "")
if(LOAM_SIMULATED)
  set(compile ${LOAM_SIMULATED_FLAGS})
  if(LOAM_BLOCK_COSTS)
    list(APPEND compile "-fplugin=${CMAKE_BINARY_DIR}/loam-block-costs.so")
  endif()
  string(JOIN "\", \"" compile ${compile})
  string(JOIN "\", \"" link ${LOAM_SIMULATED_WRAPPED})
  set(simulated "
  \"simulated\": { \"compile\": [\"${compile}\"], \"link\": [\"${link}\"] },")
endif()
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/loam-paths.json" CONTENT
"{
  \"schema\": 2,
  \"preset\": \"${LOAM_PRESET}\",
  \"root\": \"${CMAKE_SOURCE_DIR}\",
  \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\",
  \"flags\": \"${flags}\",${simulated}
  \"executables\": {
${executables}
  },
  \"libraries\": {
${libraries}
  }
}
")
