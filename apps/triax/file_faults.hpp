// SPDX-License-Identifier: Apache-2.0
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
Support in_words_of_file(const schedule::CsvFile& file, const schedule::Fault& fault);

/// Without what follows from the others: slots are given out in the order of the file, and a reader does not see them.
std::vector<schedule::Fault> without_consequences(std::vector<schedule::Fault> faults);

} // namespace triax::app
