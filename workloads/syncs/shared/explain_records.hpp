// The records of an explained run: what runtime/tm/blame/explain.hpp kept, as JSON lines (schema/record.schema.json).
//   site       an address of code that others refer to by number, relative to the object it lies in
//   conflict   one abort: both words, blocks and sites
//   footprint  what a committed transaction read and wrote, by block; a long one in several records
// Bounded: where more was kept, an even share of it is written, with weights that make up for the rest.
#pragma once

#include "workloads/harness/recorder.hpp"

namespace loam::workloads {

// Call after all threads have stopped.
void write_explain_records(Recorder& recorder);

}  // namespace loam::workloads
