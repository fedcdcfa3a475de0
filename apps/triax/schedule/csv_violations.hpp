// SPDX-License-Identifier: Apache-2.0
// Verification violations of a schedule from a file, located by line and cell. The verifier uses ranks and positions,
// from 0 and without idle cells.
#pragma once

#include <vector>

#include "csv/read_csv.hpp"
#include "schedule/violation.hpp"
#include "triax/error.hpp"

namespace triax::app {

/// "rows.csv:2:5: 1B0: it waits for 2B0 at line 3, cell 4, which is never reached"
Refusal text_of_file(const schedule::CsvFile& file, const schedule::Violation& violation);

/// Removes violations that are consequences of others. Slots are such: they are assigned in the order of the file and
/// invisible to its reader.
std::vector<schedule::Violation> without_consequences(std::vector<schedule::Violation> violations);

} // namespace triax::app
