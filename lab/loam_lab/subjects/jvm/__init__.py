"""Workloads on the JVM: what stands between the lab and a virtual machine."""
