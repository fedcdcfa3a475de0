// SPDX-License-Identifier: Apache-2.0
// triax plan: predicts training on a cluster.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/errors_out.hpp"
#include "common/refuse.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "cost/cluster_file.hpp"
#include "plan/predicted_list.hpp"
#include "plan/step_prediction.hpp"
#include "report/run_log.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

struct PlanArguments {
  std::string cluster, list;
  bool json = false;
};

/// The run of a line. Its plugins for kernels, communication and the optimizer do not count.
std::string run_toml(const PredictedRow& row) {
  const bool sequence = row.at("sp") == 1 && row.at("t") > 1;
  return text("[model]\nplugin = \"model-gpt\"\nlayers = {}\nhidden = {}\nheads = {}\nsequence = {}\nvocab = {}\n",
              row.at("layers"), row.at("hidden"), row.at("heads"), row.at("seq"), row.at("vocab")) +
         "dropout = 0.1\n" +
         text("[parallel]\npipeline = {}\ntensor = {}\ndata = {}\nchunks = {}\nsequence = {}\nscatter_gather = {}\n",
              row.at("p"), row.at("t"), row.at("d"), row.at("v"), sequence, row.at("sg") == 1 && !sequence) +
         text("[batch]\nglobal = {}\nmicro = {}\n", row.at("B"), row.at("b")) +
         text("[memory]\nrecompute = \"{}\"\n", row.recompute == "full" ? "full" : "none") +
         text("[schedule]\nplugin = \"{}\"\n", row.at("v") > 1 ? "sched-interleaved" : "sched-1f1b") +
         "[comm]\nplugin = \"comm-local\"\n[kernels]\nplugin = \"kernels-sim\"\n"
         "[optimizer]\nplugin = \"optim-adamw\"\nlr = 1e-4\n[train]\nsteps = 1\nprecision = \"bf16\"\n";
}

cost::CodeTraits code_of(const PredictedRow& row) {
  cost::CodeTraits out = *cost::code_named("megatron-" + row.code);
  const bool fuses = row.at("fused") == 1;
  out.fuses_elementwise = fuses;
  // The fused kernel of 2021 needs a multiple of 4 score matrices.
  const long long matrices = row.at("b") * row.at("heads") / row.at("t");
  out.fuses_softmax = fuses && (row.code != "2021" || matrices % 4 == 0);
  out.overlaps_reduction = row.ddp == "torch" && row.at("p") == 1;
  if (row.recompute == "selective") out.scores = cost::CodeTraits::Scores::recomputed;
  return out;
}

double answer_of(const PredictedRow& row, const plan::StepPrediction& step) {
  if (row.unit == "s/step") return step.step_s;
  if (row.unit == "seq/s") return static_cast<double>(row.at("B")) / step.step_s;
  if (row.unit == "ms fwd") return 1e3 * step.block_forward_s;
  if (row.unit == "ms bwd") return 1e3 * step.block_backward_s;
  const auto number = [&row](const char* column) { return static_cast<double>(row.at(column)); };
  const double flops =
      plan::gpt_step_flops(number("B"), number("seq"), number("layers"), number("hidden"), number("vocab"));
  return flops / (step.step_s * number("p") * number("t") * number("d")) / 1e12;
}

using Json = nlohmann::ordered_json;

Json terms_json(const plan::StepPrediction& step) {
  return {{"step_s", step.step_s},
          {"passes_s", step.passes_s},
          {"reduction_s", step.reduction_s},
          {"optimizer_s", step.optimizer_s},
          {"fixed_s", step.fixed_s},
          {"block_forward_s", step.block_forward_s},
          {"block_backward_s", step.block_backward_s}};
}

/// Prints one line or object per row. Lines of ZeRO stage 3 have no prediction.
class PredictionOutput {
 public:
  void add(const PredictedRow& row, const plan::StepPrediction& step) {
    const double answer = answer_of(row, step);
    char number[64];
    std::snprintf(number, sizeof number, "%.6g", answer);
    csv_ += row.id + "," + number + "\n";
    Json object = {{"id", row.id}, {"prediction", answer}};
    object.update(terms_json(step));
    json_.push_back(std::move(object));
  }
  void add_unpredicted(const PredictedRow& row) {
    csv_ += row.id + ",\n";
    json_.push_back({{"id", row.id}, {"prediction", nullptr}});
    ++unpredicted_;
  }
  void print(bool json) const {
    if (unpredicted_ > 0)
      print_problem(text("note: {} line{} with the unit zero3 {} no prediction: the cost model has no ZeRO stage 3",
                         unpredicted_, unpredicted_ == 1 ? "" : "s", unpredicted_ == 1 ? "has" : "have"));
    result_out() << (json ? Json{{"predictions", json_}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                          : csv_);
  }

 private:
  std::string csv_ = "id,prediction\n";
  Json json_ = Json::array();
  int unpredicted_ = 0;
};

int predict(const PlanArguments& arguments) {
  const cost::ClusterFile file = cost::read_cluster(arguments.cluster);
  if (!file.cluster) return refuse(file.refusals, arguments.json);
  std::vector<PredictedRow> rows;
  try {
    rows = read_predicted(arguments.list);
  } catch (const Error& error) {
    return refuse({config::diagnostic(ErrorCode::kInvalidValue, error)}, arguments.json);
  }
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  PredictionOutput out;
  for (const PredictedRow& row : rows) {
    if (row.unit == "zero3") {
      out.add_unpredicted(row);
      continue;
    }
    const std::string shown = text("{}:{} ({})", arguments.list, row.line, row.id);
    const config::LoadResult loaded = config::load(config::TomlText{run_toml(row), shown, {}}, {}, {},
                                                   config::Purpose::plan, plugin::FirstLoad::direct);
    if (!loaded.run) return refuse(loaded.refusals, arguments.json);
    const cost::CodeTraits code = code_of(row);
    const Refusals refusals = plan::check_prediction(*loaded.run, *log);
    if (!refusals.empty()) {
      std::vector<config::Diagnostic> located;
      for (const Refusal& refusal : refusals) located.push_back(config::diagnose(refusal, loaded.values));
      return refuse(located, arguments.json);
    }
    out.add(row, plan::predict_step({*loaded.run, *file.cluster, code}, *log));
  }
  out.print(arguments.json);
  return kDone;
}

} // namespace

void add_plan(CLI::App& program, int& status) {
  CLI::App* verb = program.add_subcommand("plan", "predicts the speed of runs of GPT on a cluster");
  const auto arguments = std::make_shared<PlanArguments>();
  verb->add_option("--cluster", arguments->cluster, "the cluster's file, such as clusters/a100-dgx.toml")
      ->required()
      ->type_name("CLUSTER.toml");
  verb->add_option("--predict", arguments->list, "the list of configurations of GPT to predict")
      ->required()
      ->type_name("CONFIGS.csv");
  verb->add_flag("--json", arguments->json, "prints one JSON object, with the parts of each step");
  verb->callback([arguments, &status] { status = predict(*arguments); });
}

} // namespace triax::app
