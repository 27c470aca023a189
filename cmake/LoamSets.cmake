# The sets that workloads choose by name are the files of structures/sets/. This makes LOAM_GENERATED/structures/sets.hpp,
# which names all of them as loam::structures::Sets.
# Also a script: cmake -DLOAM_SOURCE=. -DLOAM_GENERATED=FOLDER -P cmake/LoamSets.cmake; it makes the lists of LoamSchemes, too
include("${CMAKE_CURRENT_LIST_DIR}/LoamSchemes.cmake")

file(GLOB loam_set_headers ${on_change} "${LOAM_SOURCE}/structures/sets/*.hpp")
loam_class_list(structures/sets includes classes ${loam_set_headers})
string(REGEX REPLACE "([A-Za-z0-9]+)" "sets::\\1" classes "${classes}")
file(CONFIGURE OUTPUT "${LOAM_GENERATED}/structures/sets.hpp" CONTENT "// Made by cmake/LoamSets.cmake: all sets.
#pragma once

#include \"structures/set_list.hpp\"
${includes}
namespace loam::structures {

using Sets = SetList<${classes}>;

}  // namespace loam::structures
")
