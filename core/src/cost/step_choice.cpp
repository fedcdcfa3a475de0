// SPDX-License-Identifier: Apache-2.0
#include "cost/step_choice.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cost/integer_program.hpp"
#include "triax/error.hpp"

namespace triax::cost {

namespace {

/// Modelled times are less exact than 0.1 %, and without a gap a search spends most of its time on the last 0.1 %. The
/// limit counts nodes, not seconds, so that the result does not depend on the machine's speed.
constexpr IntegerProgram::Effort kSearch{.gap = 1e-3, .max_nodes = 2000};

/// The greatest common divisor of all sizes in bytes: in this unit, the solver's numbers are small.
std::int64_t unit_of(const StepProblem& problem) {
  std::int64_t out = problem.shared;
  for (const StepGraph& graph : problem.stages) {
    out = std::gcd(out, graph.shared);
    for (const StepGraph::Tensor& tensor : graph.tensors)
      for (const std::int64_t bytes : {tensor.kept, tensor.dropped, tensor.shared}) out = std::gcd(out, bytes);
  }
  return std::max<std::int64_t>(out, 1);
}

/// Blocks of one stage that all recompute the same steps, and the variables of this choice.
struct BlockSet {
  const StepGraph* graph = nullptr;
  std::size_t stage = 0;
  int blocks = 0;
  std::vector<int> dropped, steps; // variables, by tensor and step
};

class StepProgram {
 public:
  explicit StepProgram(const StepProblem& problem)
      : problem_(problem), unit_(unit_of(problem)), shared_(program_.add_real(problem.shared / unit_, 0)) {
    for (std::size_t stage = 0; stage < problem.stages.size(); ++stage)
      for (const int blocks : block_sets(problem.stages[stage].blocks)) add_set(stage, blocks);
  }

  /// Limits the bytes beyond kept_bytes() to what these leave of the budget.
  void limit_bytes(std::int64_t budget) { program_.limit(bytes_, floor_units(budget - kept_bytes())); }
  void minimize_time() { set_costs(times_); }
  void minimize_bytes() { set_costs(bytes_); }

  std::optional<StepChoice> solve(const IntegerProgram::Effort& effort) const {
    const IntegerProgram::Solution values = program_.minimize(effort);
    if (!values) return std::nullopt;
    StepChoice out;
    out.blocks.resize(problem_.stages.size());
    for (const BlockSet& set : sets_) {
      BlockSteps block;
      for (std::size_t i = 0; i < set.steps.size(); ++i)
        if ((*values)[static_cast<std::size_t>(set.steps[i])]) block.steps.push_back(static_cast<int>(i));
      for (std::size_t i = 0; i < set.dropped.size(); ++i)
        if ((*values)[static_cast<std::size_t>(set.dropped[i])]) block.dropped.push_back(static_cast<int>(i));
      const std::string wrong = wrong_steps(*set.graph, block);
      TRIAX_REQUIRE(wrong.empty(), "the solver returned an invalid solution: {}", wrong);
      for (int i = 0; i < set.blocks; ++i) out.blocks[set.stage].push_back(block);
    }
    evaluate(problem_, out);
    return out;
  }

 private:
  using Term = IntegerProgram::Term;

  void add_set(std::size_t stage, int blocks) {
    const StepGraph& graph = problem_.stages[stage];
    BlockSet set{&graph, stage, blocks, {}, {}};
    std::vector<Term> shared{{shared_, -1}};
    for (const StepGraph::Tensor& tensor : graph.tensors) {
      const int dropped = set.dropped.emplace_back(program_.add_binary(0));
      if (const std::int64_t more = blocks * (tensor.dropped - tensor.kept) / unit_; more != 0)
        bytes_.push_back({dropped, more});
      if (tensor.shared != 0) shared.push_back({dropped, tensor.shared / unit_});
    }
    program_.limit(std::move(shared), -graph.shared / unit_);
    for (const StepGraph::Step& step : graph.steps)
      times_.push_back({set.steps.emplace_back(program_.add_binary(0)), blocks * step.time});
    limit_steps(set);
    if (sets_.empty()) bytes_.push_back({shared_, 1});
    sets_.push_back(std::move(set));
  }

  /// A dropped tensor is written by a chosen step. A tensor that a chosen step reads is kept, or an earlier chosen step
  /// writes it.
  void limit_steps(const BlockSet& set) {
    const auto add_writers = [&set](std::vector<Term>& terms, std::size_t before, int tensor) {
      for (std::size_t i = 0; i < before; ++i)
        if (std::ranges::find(set.graph->steps[i].writes, tensor) != set.graph->steps[i].writes.end())
          terms.push_back({set.steps[i], -1});
    };
    for (std::size_t tensor = 0; tensor < set.dropped.size(); ++tensor) {
      std::vector<Term> terms{{set.dropped[tensor], 1}};
      add_writers(terms, set.steps.size(), static_cast<int>(tensor));
      program_.limit(std::move(terms), 0);
    }
    for (std::size_t step = 0; step < set.steps.size(); ++step)
      for (const int tensor : set.graph->steps[step].reads) {
        std::vector<Term> terms{{set.steps[step], 1}, {set.dropped[static_cast<std::size_t>(tensor)], 1}};
        add_writers(terms, step, tensor);
        program_.limit(std::move(terms), 1);
      }
  }

  /// Bytes if every tensor is kept, without the memory that calls share.
  std::int64_t kept_bytes() const {
    std::int64_t out = problem_.fixed;
    for (const StepGraph& graph : problem_.stages)
      for (const StepGraph::Tensor& tensor : graph.tensors) out += graph.blocks * tensor.kept;
    return out;
  }
  std::int64_t floor_units(std::int64_t bytes) const {
    return bytes >= 0 ? bytes / unit_ : -((-bytes + unit_ - 1) / unit_);
  }

  void set_costs(const std::vector<Term>& costs) {
    for (const std::vector<Term>* const terms : {&bytes_, &times_})
      for (const Term& term : *terms) program_.set_cost(term.variable, 0);
    for (const Term& term : costs) program_.set_cost(term.variable, term.factor);
  }

  const StepProblem& problem_;
  const std::int64_t unit_;
  IntegerProgram program_;
  const int shared_;
  std::vector<BlockSet> sets_;
  std::vector<Term> bytes_, times_;
};

/// The choice that keeps everything.
StepChoice without_steps(const StepProblem& problem) {
  StepChoice out;
  for (const StepGraph& graph : problem.stages) out.blocks.emplace_back(static_cast<std::size_t>(graph.blocks));
  evaluate(problem, out);
  return out;
}

/// Drops tensors that the chosen steps write in any case, if that saves memory.
void drop_more(const StepProblem& problem, StepChoice& choice) {
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    const StepGraph& graph = problem.stages[stage];
    for (int tensor = 0; tensor < static_cast<int>(graph.tensors.size()); ++tensor) {
      StepChoice less = choice;
      for (BlockSteps& block : less.blocks[stage]) {
        BlockSteps more = block;
        const auto at = std::ranges::lower_bound(more.dropped, tensor);
        if (at != more.dropped.end() && *at == tensor) continue;
        more.dropped.insert(at, tensor);
        if (wrong_steps(graph, more).empty()) block = std::move(more);
      }
      evaluate(problem, less);
      if (less.bytes < choice.bytes) choice = std::move(less);
    }
  }
}

} // namespace

std::string wrong_steps(const StepGraph& graph, const BlockSteps& block) {
  std::vector<bool> exists(graph.tensors.size(), true);
  for (const int tensor : block.dropped) exists[static_cast<std::size_t>(tensor)] = false;
  for (const int number : block.steps) {
    const StepGraph::Step& step = graph.steps[static_cast<std::size_t>(number)];
    for (const int tensor : step.reads)
      if (!exists[static_cast<std::size_t>(tensor)])
        return text("{} reads {}, which is not kept", step.name, graph.tensors[static_cast<std::size_t>(tensor)].name);
    for (const int tensor : step.writes) exists[static_cast<std::size_t>(tensor)] = true;
  }
  for (std::size_t i = 0; i < exists.size(); ++i)
    if (!exists[i]) return text("{} is dropped, but no step computes it again", graph.tensors[i].name);
  return {};
}

void evaluate(const StepProblem& problem, StepChoice& choice) {
  choice.time = 0;
  choice.bytes = problem.fixed;
  std::int64_t shared = problem.shared;
  for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
    const StepGraph& graph = problem.stages[stage];
    for (const BlockSteps& block : choice.blocks[stage]) {
      std::int64_t of_call = graph.shared;
      for (const StepGraph::Tensor& tensor : graph.tensors) choice.bytes += tensor.kept;
      for (const int dropped : block.dropped) {
        const StepGraph::Tensor& tensor = graph.tensors[static_cast<std::size_t>(dropped)];
        choice.bytes += tensor.dropped - tensor.kept;
        of_call += tensor.shared;
      }
      for (const int step : block.steps) choice.time += graph.steps[static_cast<std::size_t>(step)].time;
      shared = std::max(shared, of_call);
    }
  }
  choice.bytes += shared;
}

std::vector<int> block_sets(int blocks) {
  std::vector<int> out;
  for (int size = 1; blocks > 0; size *= out.size() == 1 ? 1 : 2) {
    out.push_back(std::min(size, blocks));
    blocks -= out.back();
  }
  return out;
}

std::optional<StepChoice> choose_steps(const StepProblem& problem) {
  if (StepChoice all = without_steps(problem); all.bytes <= problem.budget) return all;
  StepProgram program(problem);
  program.limit_bytes(problem.budget);
  program.minimize_time();
  std::optional<StepChoice> best = program.solve(kSearch);
  if (!best) { // infeasible, or no solution within kSearch.max_nodes
    best = smallest_steps(problem);
    if (best->bytes > problem.budget) return std::nullopt;
  }
  drop_more(problem, *best);
  TRIAX_REQUIRE(best->bytes <= problem.budget, "the solver returned {} bytes for a budget of {}", best->bytes,
                problem.budget);
  return best;
}

StepChoice smallest_steps(const StepProblem& problem) {
  StepProgram program(problem);
  program.minimize_bytes();
  const std::optional<StepChoice> out = program.solve({});
  TRIAX_REQUIRE(out, "the solver found no recomputation");
  return *out;
}

} // namespace triax::cost
