// What the proof has against a schedule that was read from a file, in the words of the file: it names ranks and
// positions, from 0 and without idle cells; a reader of the file looks for lines and cells.
//
// Threads: one. Ownership: values. Blocking: never. Errors: none.
#pragma once

#include <vector>

#include "schedule/fault.hpp"
#include "schedule/read_csv.hpp"
#include "triax/error.hpp"

namespace triax::app {

/// "rows.csv:2:5: 1B0: it waits for 2B0 at line 3, cell 4, which is never reached"
std::vector<Support> in_words_of_file(const schedule::CsvFile& file, const std::vector<schedule::Fault>& faults);

} // namespace triax::app
