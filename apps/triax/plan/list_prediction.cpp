// SPDX-License-Identifier: Apache-2.0
#include "plan/list_prediction.hpp"

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

/// The run of a line. Its plugins for kernels, communication and the optimizer do not count.
std::string run_toml(const PredictedRow& row) {
  const bool sequence = row.at("sp") == 1 && row.at("t") > 1;
  return text("[model]\nplugin = \"model-gpt\"\nlayers = {}\nhidden = {}\nheads = {}\nsequence = {}\nvocab = {}\n",
              row.at("layers"), row.at("hidden"), row.at("heads"), row.at("seq"), row.at("vocab")) +
         "dropout = 0.1\n" +
         text("[parallel]\npipeline = {}\ntensor = {}\ndata = {}\nchunks = {}\nsequence = {}\nscatter_gather = {}\n",
              row.at("p"), row.at("t"), row.at("d"), row.at("v"), sequence, row.at("sg") == 1 && !sequence) +
         text("[batch]\nglobal = {}\nmicro = {}\n", row.at("B"), row.at("b")) +
         text("[memory]\nrecompute = \"{}\"\n", row.recompute == "selective" ? "none" : row.recompute) +
         text("[schedule]\nplugin = \"{}\"\n", row.at("v") > 1 ? "sched-interleaved" : "sched-1f1b") +
         "[comm]\nplugin = \"comm-local\"\n[kernels]\nplugin = \"kernels-sim\"\n"
         "[optimizer]\nplugin = \"optim-adamw\"\nlr = 1e-4\n[train]\nsteps = 1\n" +
         text("precision = \"{}\"\n", kListPrecision);
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

struct ReadRow {
  const PredictedRow& row;
  config::RunConfig run;
};

/// The runs of all rows, and what is wrong with any of them.
std::vector<ReadRow> runs_of(const std::string& list, const std::vector<PredictedRow>& rows, Log& log,
                             std::vector<config::Diagnostic>& errors) {
  std::vector<ReadRow> out;
  for (const PredictedRow& row : rows) {
    if (row.unit == "zero3") continue;
    const std::string shown = text("{}:{} ({})", list, row.line, row.id);
    const auto refuse_row = [&](const Refusal& refusal) {
      errors.push_back(config::located_diagnostic({.file = list, .line = row.line},
                                                  {refusal.code,
                                                   {"--predict"},
                                                   text("{}: {}", row.id, in_columns(refusal.message)),
                                                   in_columns(refusal.hint)}));
    };
    config::LoadResult loaded = config::load(config::TomlText{run_toml(row), shown, {}}, {}, {}, config::Purpose::plan,
                                             plugin::FirstLoad::direct);
    for (const config::Diagnostic& error : loaded.refusals) refuse_row(error.refusal);
    if (!loaded.run) continue;
    const Refusals refusals = plan::check_prediction(*loaded.run, log);
    for (const Refusal& refusal : refusals) refuse_row(refusal);
    if (refusals.empty()) out.push_back({row, std::move(*loaded.run)});
  }
  return out;
}

} // namespace

int predict_list(const cost::Cluster& cluster, const std::string& list, bool json) {
  std::vector<config::Diagnostic> errors;
  const std::vector<PredictedRow> rows = read_predicted(list, errors);
  const std::unique_ptr<Log> log = report::make_run_log(LogLevel::warn, {}, 0);
  const std::vector<ReadRow> runs = runs_of(list, rows, *log, errors);
  if (!errors.empty()) return refuse(errors, json);
  PredictionOutput out;
  auto next = runs.begin();
  for (const PredictedRow& row : rows) {
    if (row.unit == "zero3") {
      out.add_unpredicted(row);
      continue;
    }
    out.add(row, plan::predict_step({next->run, cluster, code_of(row)}, *log));
    ++next;
  }
  out.print(json);
  return kDone;
}

} // namespace triax::app
