// SPDX-License-Identifier: Apache-2.0
// Linear programs with binary variables, solved by CBC.
//
// Threads: any; solving is serialized in the process. Blocking: computes. Errors: Error if the solver fails, or if
// Triax was built without it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace triax::cost {

/// Whether this build has the solver.
bool has_integer_solver();

/// Minimizes a sum of costs under limits. All numbers are integers, so that equal programs have equal solutions.
class IntegerProgram {
 public:
  struct Term {
    int variable = 0;
    std::int64_t factor = 0;
  };

  /// Add a variable, and return its number: 0 or 1, or a real number of at least `least`.
  /// @{
  int add_binary(std::int64_t cost);
  int add_real(std::int64_t least, std::int64_t cost);
  /// @}
  void set_cost(int variable, std::int64_t cost);
  /// The sum of the terms is at most `most`. Variables are named once.
  void limit(std::vector<Term> terms, std::int64_t most);

  /// The binary variables that are 1 in the best solution, by variable; real ones are false. Empty: there is no
  /// solution.
  std::optional<std::vector<bool>> minimize() const;

 private:
  struct Variable {
    bool is_binary = true;
    std::int64_t least = 0, cost = 0;
  };
  struct Limit {
    std::vector<Term> terms;
    std::int64_t most = 0;
  };
  std::vector<Variable> variables_;
  std::vector<Limit> limits_;
};

} // namespace triax::cost
