// SPDX-License-Identifier: Apache-2.0
// libtriax_solver.so: solves integer programs with CBC. cost/integer_program.cpp loads it.
#include <coin/Cbc_C_Interface.h>

#include <csignal>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "cost/integer_program.hpp"
#include "triax/error.hpp"
#include "triax/export.hpp"
#include "triax/text.hpp"

namespace triax::cost {

namespace {

/// CBC has global state, and replaces the handler of SIGINT while it solves.
class SolverLock {
 public:
  SolverLock() : lock_(mutex()) { sigaction(SIGINT, nullptr, &interrupt_); }
  ~SolverLock() { sigaction(SIGINT, &interrupt_, nullptr); }
  SolverLock(const SolverLock&) = delete;
  SolverLock& operator=(const SolverLock&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex of_process;
    return of_process;
  }
  const std::lock_guard<std::mutex> lock_;
  struct sigaction interrupt_ {};
};

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};
using CbcModel = std::unique_ptr<Cbc_Model, DeleteModel>;

CbcModel make_model(const IntegerProgram& program, const IntegerProgram::Effort& effort) {
  CbcModel model(Cbc_newModel());
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "ratioGap", text("{}", effort.gap).c_str());
  Cbc_setParameter(model.get(), "allowableGap", "0");
  if (effort.max_nodes > 0) Cbc_setMaximumNodes(model.get(), effort.max_nodes);
  // Its preprocessing of some small programs ends the process, by an assertion in ClpNonLinearCost.
  Cbc_setParameter(model.get(), "preprocess", "off");
  for (const IntegerProgram::Variable& variable : program.variables())
    Cbc_addCol(model.get(), "", static_cast<double>(variable.least),
               variable.is_binary ? 1 : std::numeric_limits<double>::max(), static_cast<double>(variable.cost),
               variable.is_binary ? 1 : 0, 0, nullptr, nullptr);
  for (const IntegerProgram::Limit& limit : program.limits()) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const IntegerProgram::Term& term : limit.terms) {
      columns.push_back(term.variable);
      factors.push_back(static_cast<double>(term.factor));
    }
    Cbc_addRow(model.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(), 'L',
               static_cast<double>(limit.most));
  }
  return model;
}

} // namespace

extern "C" TRIAX_API void triax_solve_integer_program(const IntegerProgram& program,
                                                      const IntegerProgram::Effort& effort,
                                                      IntegerProgram::Solution& solution) {
  const SolverLock lock;
  const CbcModel model = make_model(program, effort);
  Cbc_solve(model.get());
  solution.reset();
  if (Cbc_isProvenInfeasible(model.get()) != 0) return;
  const bool is_stopped = Cbc_isNodeLimitReached(model.get()) != 0;
  if (is_stopped && Cbc_numberSavedSolutions(model.get()) == 0) return;
  TRIAX_REQUIRE(is_stopped || Cbc_isProvenOptimal(model.get()) != 0, "CBC found no solution (status {})",
                Cbc_status(model.get()));
  const double* const values = Cbc_getColSolution(model.get());
  solution.emplace();
  for (std::size_t i = 0; i < program.variables().size(); ++i)
    solution->push_back(program.variables()[i].is_binary && values[i] > 0.5);
}

} // namespace triax::cost
