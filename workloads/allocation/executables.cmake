# Workloads that only allocate: one executable, the synchronisation `none`.
file(GLOB loam_allocation_sources CONFIGURE_DEPENDS "${workloads}/allocation/*.cpp")
loam_workload_executable(none "workloads/allocation/none.hpp" ${loam_allocation_sources})
