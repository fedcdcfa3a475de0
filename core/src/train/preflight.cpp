// Asks everything that can be asked before a run starts.
#include "train/preflight.hpp"

#include <set>

#include "data/dataset.hpp"
#include "schedule/verify.hpp"
#include "train/cores.hpp"
#include "train/preparation.hpp"

namespace triax::train {

namespace {

constexpr std::int64_t kMaxWorld = 1 << 20;
constexpr std::int64_t kMaxActions = 1 << 22; // of each kind; a row of more is a slip, and would fill the memory

class Check {
 public:
  Check(const config::RunConfig& run, Log& log) : run_(run), log_(log), layout_(layout_of(run)) {}

  Preflight take() {
    guarded([this] {
      ask_plugins();
      check_world();
      check_data();
      if (out_.refusals.empty() || only_world_refused_) plan_ranks();
    });
    return std::move(out_);
  }

 private:
  /// What a plugin or a room throws while being asked is a refusal as well.
  template <class Body>
  void guarded(Body body) {
    try {
      body();
    } catch (const Error& error) {
      const std::string where = error.where().empty() ? "" : error.where() + ": ";
      refuse(Support::no("{}{}", where, error.message()).hint("{}", error.hint()));
    }
  }
  void refuse(Support refusal) { out_.refusals.push_back(std::move(refusal)); }

  void ask_plugins() {
    plugins_ = std::make_unique<RankPlugins>(run_, layout_, 0, available_cores(), log_);
    for (Support& refusal : plugins_->refusals(layout_)) refuse(std::move(refusal));
  }

  void check_world() {
    if (layout_.world() == 1) return;
    only_world_refused_ = out_.refusals.empty();
    refuse(Support::no("parallel.pipeline = {} x parallel.tensor = {} x parallel.data = {} is a run of {} ranks: this "
                       "version trains on one rank",
                       layout_.pipeline(), layout_.tensor(), layout_.data(), layout_.world())
               .hint("use 1 for each of them"));
  }

  void check_data() {
    const std::int64_t sequence = plugins_->model().info().sequence;
    for (const std::filesystem::path& path : {run_.data.path, run_.data.validation}) {
      if (path.empty() || (path == run_.data.validation && run_.eval.every == 0)) continue;
      guarded([&] { const data::Dataset readable(path, sequence, run_.vocab, run_.train.seed); });
    }
  }

  /// Ranks of one pipeline stage alone: without transfers, a rank holds all stages.
  void plan_ranks() {
    const std::int64_t stages = std::int64_t{run_.parallel.pipeline} * run_.parallel.chunks;
    if (stages * run_.microbatches() > kMaxActions) {
      return refuse(
          Support::no("batch.global = {} makes {} microbatches of batch.micro = {} on each of {} stages: more "
                      "than {} actions in a step",
                      run_.batch.global, run_.microbatches(), run_.batch.micro, stages, kMaxActions)
              .hint("use a larger batch.micro or a smaller batch.global"));
    }
    const Schedule schedule = plugins_->scheduler().rows(pipeline_shape(run_));
    const std::vector<Support> wrong = check_schedule(run_, plugins_->model(), schedule);
    for (const Support& refusal : wrong) refuse(refusal);
    if (!wrong.empty() || layout_.pipeline() > 1) return;
    for (int rank = 0; rank < layout_.world(); ++rank) plan_rank(rank, schedule);
  }

  void plan_rank(int rank, const Schedule& schedule) {
    const RankPlugins plugins(run_, layout_, rank, available_cores(), log_);
    const Preparation prepared(run_, layout_, rank, plugins, schedule);
    const executor::Plan plan = prepared.state->plan(plugins.kernels(), plugins.optimizer());
    for (const Support& refusal : plan.refusals)
      if (refused_.insert(refusal.reason()).second) refuse(refusal); // ranks of one shape are refused alike
    RankPlan row{rank,
                 layout_.coordinate(rank, "pipeline"),
                 layout_.coordinate(rank, "data"),
                 layout_.coordinate(rank, "tensor"),
                 prepared.state->layer_names(),
                 {}};
    for (const executor::RankMemory::Row& of : prepared.state->memory(plan.scratch))
      row.memory.push_back({of.what, of.bytes});
    out_.ranks.push_back(std::move(row));
    if (rank > 0) return;
    for (const executor::Parameter& parameter : prepared.state->parameters().all())
      out_.parameters += parameter.spec->global.elements();
  }

  const config::RunConfig& run_;
  Log& log_;
  Layout layout_;
  std::unique_ptr<RankPlugins> plugins_;
  bool only_world_refused_ = false;
  std::set<std::string> refused_; // by the plan of a rank
  Preflight out_;
};

} // namespace

Preflight preflight(const config::RunConfig& run, Log& log) {
  const std::int64_t world = std::int64_t{run.parallel.pipeline} * run.parallel.tensor;
  if (world > kMaxWorld || world * run.parallel.data > kMaxWorld) {
    Preflight out;
    out.refusals.push_back(
        Support::no("parallel.pipeline = {} x parallel.tensor = {} x parallel.data = {} is more than "
                    "{} ranks",
                    run.parallel.pipeline, run.parallel.tensor, run.parallel.data, kMaxWorld)
            .hint("use smaller sizes"));
    return out;
  }
  return Check(run, log).take();
}

} // namespace triax::train
