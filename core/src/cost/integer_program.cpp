// SPDX-License-Identifier: Apache-2.0
#include "cost/integer_program.hpp"

#include <utility>

#include "triax/error.hpp"

#ifdef TRIAX_HAS_CBC
#include <coin/Cbc_C_Interface.h>

#include <csignal>
#include <limits>
#include <memory>
#include <mutex>
#endif

namespace triax::cost {

int IntegerProgram::add_binary(std::int64_t cost) {
  variables_.push_back({true, 0, cost});
  return static_cast<int>(variables_.size()) - 1;
}

int IntegerProgram::add_real(std::int64_t least, std::int64_t cost) {
  variables_.push_back({false, least, cost});
  return static_cast<int>(variables_.size()) - 1;
}

void IntegerProgram::set_cost(int variable, std::int64_t cost) {
  variables_.at(static_cast<std::size_t>(variable)).cost = cost;
}

void IntegerProgram::limit(std::vector<Term> terms, std::int64_t most) {
  limits_.push_back({std::move(terms), most});
}

#ifdef TRIAX_HAS_CBC

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

} // namespace

bool has_integer_solver() {
  return true;
}

std::optional<std::vector<bool>> IntegerProgram::minimize() const {
  const SolverLock lock;
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", "0");
  for (const Variable& variable : variables_)
    Cbc_addCol(model.get(), "", static_cast<double>(variable.least),
               variable.is_binary ? 1 : std::numeric_limits<double>::max(), static_cast<double>(variable.cost),
               variable.is_binary ? 1 : 0, 0, nullptr, nullptr);
  for (const Limit& limit : limits_) {
    std::vector<int> columns;
    std::vector<double> factors;
    for (const Term& term : limit.terms) {
      columns.push_back(term.variable);
      factors.push_back(static_cast<double>(term.factor));
    }
    Cbc_addRow(model.get(), "", static_cast<int>(columns.size()), columns.data(), factors.data(), 'L',
               static_cast<double>(limit.most));
  }
  Cbc_solve(model.get());
  if (Cbc_isProvenInfeasible(model.get()) != 0) return std::nullopt;
  TRIAX_REQUIRE(Cbc_isProvenOptimal(model.get()) != 0, "CBC found no solution (status {})", Cbc_status(model.get()));
  const double* const values = Cbc_getColSolution(model.get());
  std::vector<bool> out;
  for (std::size_t i = 0; i < variables_.size(); ++i) out.push_back(variables_[i].is_binary && values[i] > 0.5);
  return out;
}

#else

bool has_integer_solver() {
  return false;
}

std::optional<std::vector<bool>> IntegerProgram::minimize() const {
  throw Error("this build has no solver of integer programs", {},
              "install CBC (Debian: coinor-libcbc-dev) and build again");
}

#endif

} // namespace triax::cost
