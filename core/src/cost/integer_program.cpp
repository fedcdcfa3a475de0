// SPDX-License-Identifier: Apache-2.0
#include "cost/integer_program.hpp"

#include <dlfcn.h>

#include <system_error>
#include <utility>

#include "plugin/loader.hpp"
#include "plugin/plugin_call.hpp"
#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::cost {

namespace {

using Solve = void(const IntegerProgram& program, const IntegerProgram::Effort& effort,
                   IntegerProgram::Solution& solution);

struct Solver {
  Solve* solve = nullptr;
  std::string error{}; // why it is null
};

/// Beside libtriax_core.so.
std::filesystem::path solver_file() {
  return plugin::core_folder() / "libtriax_solver.so";
}

/// The library stays loaded.
Solver load_solver(const std::filesystem::path& file) {
  static constexpr const char* kNotLoaded = "the solver of integer programs cannot be loaded";
  const auto last_error = [] {
    const char* const error = dlerror(); // has the file
    return text("{}: {}", kNotLoaded, error ? error : "unknown error");
  };
  std::error_code unknown;                      // then dlopen() says why
  if (std::filesystem::is_other(file, unknown)) // opening a FIFO would block
    return {nullptr, text("{}: {} is not a regular file", kNotLoaded, file.string())};
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return {nullptr, last_error()};
  auto* const solve = reinterpret_cast<Solve*>(dlsym(library, "triax_solve_integer_program"));
  if (!solve) return {nullptr, last_error()};
  return {solve};
}

} // namespace

std::string integer_solver_error() {
  return integer_solver_error(solver_file());
}

std::string integer_solver_error(const std::filesystem::path& file) {
  return load_solver(file).error;
}

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

IntegerProgram::Solution IntegerProgram::minimize(const Effort& effort) const {
  const Solver solver = load_solver(solver_file());
  if (!solver.solve) throw Error(solver.error, {}, "install CBC (Debian: coinor-libcbc-dev) and build Triax again");
  // A probe process that CBC ends names the solver, and not the plugin whose costs it was asked for.
  const plugin::CallScope call("the solver of integer programs (CBC)", "its solution", {}, plugin::CallKind::slow_call);
  Solution out;
  solver.solve(*this, effort, out);
  return out;
}

} // namespace triax::cost
