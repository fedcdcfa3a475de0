// SPDX-License-Identifier: Apache-2.0
// The clauses of the interfaces' contracts. A public header marks a clause by a comment that begins with its id, and
// the build lists them with their lines:
//
//   // [C7] The members of a group post the same collectives in the same order.
//
// The letter is the kind's: C communicator, S scheduler, K kernels, M model, O optimizer,
// P planner. The sentence ends at the next clause, or where the comment has an empty line or ends.
//
// Threads: any. Ownership: constants. Blocking: never. Errors: find_clause() throws Error for an unknown id.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace triax::conformance {

/// One sentence of a contract.
struct Clause {
  const char* id = "";       // "C7"
  const char* sentence = ""; // without the id, on one line
  const char* header = "";   // "triax/communicator.hpp"
  int line = 0;              // where it begins
  const char* of = "";       // the struct whose comment it ends, such as an operation: "AttentionFwd"; or empty
};

/// All clauses, in the order of headers and lines; the one with this id, which must exist.
/// @{
std::span<const Clause> clauses() noexcept;
const Clause& find_clause(std::string_view id);
/// @}

} // namespace triax::conformance
