// SPDX-License-Identifier: Apache-2.0
// Linear programs with binary variables. libtriax_solver.so solves them; it is loaded when it is first needed, because
// most runs do not need it, and its libraries take longer to load than those of the program.
//
// Threads: any; solving is serialized in the process. Blocking: loads the library, computes. Errors: Error if the
// library cannot be loaded, or the solver fails.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace triax::cost {

/// Why libtriax_solver.so cannot be loaded; empty if it can.
std::string integer_solver_error();
/// The same of this file.
std::string integer_solver_error(const std::filesystem::path& file);

/// Minimizes a sum of costs under limits. All numbers are integers, so that equal programs have equal solutions.
class IntegerProgram {
 public:
  struct Variable {
    bool is_binary = true;
    std::int64_t least = 0, cost = 0;
  };
  struct Term {
    int variable = 0;
    std::int64_t factor = 0;
  };
  struct Limit {
    std::vector<Term> terms;
    std::int64_t most = 0;
  };
  /// The binary variables that are 1, by variable; real ones are false. Empty: there is no solution.
  using Solution = std::optional<std::vector<bool>>;

  /// Add a variable, and return its number: 0 or 1, or a real number of at least `least`.
  /// @{
  int add_binary(std::int64_t cost);
  int add_real(std::int64_t least, std::int64_t cost);
  /// @}
  void set_cost(int variable, std::int64_t cost);
  /// The sum of the terms is at most `most`. Variables are named once.
  void limit(std::vector<Term> terms, std::int64_t most);

  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Limit>& limits() const { return limits_; }

  /// When the search ends.
  struct Effort {
    double gap = 0;    // with a solution that costs at most this fraction more than the best one
    int max_nodes = 0; // after this number of nodes, with the best solution among them; 0: no limit
  };
  /// A solution within the gap; within no gap if the nodes end the search. Empty: there is none, or none in these
  /// nodes.
  Solution minimize(const Effort& effort) const;

 private:
  std::vector<Variable> variables_;
  std::vector<Limit> limits_;
};

} // namespace triax::cost
