"""What is measured, and where: allocators, workloads, programs, machines."""
