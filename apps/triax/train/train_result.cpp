// SPDX-License-Identifier: Apache-2.0
#include "train/train_result.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "common/errors_json.hpp"
#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "evaluate/evaluate_text.hpp"
#include "os/signal_name.hpp"
#include "os/stderr_output.hpp"
#include "report/traffic.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; // a path may be invalid UTF-8
}

void print(const Json& object) {
  result_out() << text_of(object);
}

/// The stream of text after the result: stderr. Text is left out if stderr takes no output, so that the process ends.
std::ostream& after_result() {
  result_out().flush();
  static std::ostream& out = os::new_stderr_stream();
  return out;
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// `outcome`: "trained", "complete", "evaluated", "stopped", "failed" or "refused".
Json head(const TrainArguments& arguments, const char* outcome, int status) {
  Json out = {{"file", arguments.file}, {"outcome", outcome}, {"exit_status", status}};
  if (!arguments.evaluates) out["restarts"] = arguments.restart.number;
  return out;
}

Json traffic_json(const std::vector<report::GroupTraffic>& groups) {
  Json out = Json::object();
  for (const report::GroupTraffic& group : groups)
    out[group.group] = {
        {"plugin", group.plugin}, {"ops", group.ops}, {"bytes_out", group.bytes_out}, {"bytes_in", group.bytes_in}};
  return out;
}

void add_result(Json& out, const config::RunConfig& run, const train::LoopResult& result) {
  const bool stepped = result.steps > 0;
  out["signal"] = result.signal == 0 ? Json(nullptr) : Json(signal_name(result.signal));
  out["folder"] = run.folder.string();
  out["metrics"] = stepped ? Json(result.metrics) : Json(nullptr);
  out["steps"] = result.steps;
  out["last_step"] = result.last_step;
  out["checkpoint"] = result.checkpoint.empty() ? Json(nullptr) : Json(result.checkpoint);
  out["skipped"] = result.skipped;
  out["first_loss"] = result.has_loss() ? Json(result.first_loss) : Json(nullptr);
  out["last_loss"] = result.has_loss() ? Json(result.last_loss) : Json(nullptr);
  out["eval_loss"] = or_null(result.eval_loss);
  out["tokens_per_s"] = result.tokens_per_s;
  out["records"] = result.records;
  out["missing"] = {{"records", result.missing.records},
                    {"log_lines", result.missing.log_lines},
                    {"timelines", result.missing.timelines},
                    {"checkpoints", result.missing.checkpoints},
                    {"events", result.missing.events}};
  out["traffic"] = traffic_json(result.traffic);
}

/// The object of a process that ends at once: all other values are null.
Json stopped_at_once(const TrainArguments& arguments, int signal, const TrainedSteps& steps) {
  Json out = head(arguments, "stopped", 128 + signal);
  out["signal"] = signal_name(signal);
  if (arguments.evaluates) {
    add_evaluation(out, {});
    return out;
  }
  for (const char* key : {"folder", "metrics", "steps", "last_step", "checkpoint", "skipped", "first_loss", "last_loss",
                          "eval_loss", "tokens_per_s"})
    out[key] = nullptr;
  out["steps"] = steps.count();
  if (steps.last() > 0) out["last_step"] = steps.last();
  return out;
}

} // namespace

int TrainReport::refused(const std::vector<config::Diagnostic>& refusals) const {
  print_errors(refusals);
  if (!arguments_.json) return kRefused;
  Json out = head(arguments_, "refused", kRefused);
  add_errors(out, refusals);
  print(out);
  return kRefused;
}

std::string failure_text(const TrainArguments& arguments, const std::string& folder, int rank, const std::string& why,
                         int status) {
  Json out = head(arguments, "failed", status);
  out["folder"] = folder.empty() ? Json(nullptr) : Json(folder);
  out["rank"] = rank < 0 ? Json(nullptr) : Json(rank);
  out["reason"] = why;
  return text_of(out);
}

int TrainReport::failed(const config::RunConfig& run, int rank, const std::string& why, int status) const {
  if (has_printed_.test_and_set()) return status;
  const std::string object = failure_text(arguments_, run.folder.string(), rank, why, status);
  if (arguments_.supervised) {
    arguments_.supervised->send(object);
  } else if (arguments_.json) {
    result_out() << object << std::flush;
  }
  return status;
}

int end_status(const train::LoopResult& result) {
  const bool stopped = result.signal != 0 || result.out_of_time;
  if (!stopped) return result.missing.any() ? kFailed : kDone;
  if (result.steps > 0 && result.is_saved()) return kUnfinished;
  if (result.missing.checkpoints > 0) return kFailed; // the last step should have been saved
  return result.signal != 0 ? 128 + result.signal : kFailed;
}

/// A stop loses an evaluation, of which nothing is saved.
int TrainReport::evaluated(const config::RunConfig& run, const train::LoopResult& result) const {
  const int status = result.signal != 0 ? 128 + result.signal : kDone;
  if (arguments_.json && !has_printed_.test_and_set()) {
    Json out = head(arguments_, result.signal != 0 ? "stopped" : "evaluated", status);
    out["signal"] = result.signal == 0 ? Json(nullptr) : Json(signal_name(result.signal));
    out["folder"] = run.folder.string();
    add_evaluation(out, result);
    out["traffic"] = traffic_json(result.traffic);
    print(out);
  } else if (!arguments_.json && result.signal == 0) {
    result_out() << evaluation_line(run, result) << '\n';
  }
  if (result.signal != 0)
    after_result() << text("stopped by {} before the evaluation ended", signal_name(result.signal)) << '\n';
  return status;
}

int TrainReport::ended(const config::RunConfig& run, const train::LoopResult& result) const {
  if (run.evaluates) return evaluated(run, result);
  const bool stopped = result.signal != 0 || result.out_of_time, complete = !stopped && result.steps == 0;
  const int status = end_status(result);
  if (arguments_.json && !has_printed_.test_and_set()) {
    Json out = head(arguments_, stopped ? "stopped" : complete ? "complete" : "trained", status);
    add_result(out, run, result);
    print(out);
  } else if (!arguments_.json && !stopped) {
    result_out() << (complete ? complete_line(run, result) : result_line(run, result)) << '\n';
  }
  if (stopped) {
    after_result() << stop_line(run, result) << '\n';
  } else if (const std::string moved = report::traffic_text(result.traffic); !complete && !moved.empty()) {
    after_result() << moved << '\n';
  }
  if (stopped && (result.steps == 0 || result.checkpoint.empty())) return status;
  const std::string resolved = (run.folder / "resolved.toml").string();
  after_result() << (config::is_piped(arguments_.file)
                         ? next_line(run, result, shown(resolved), {}, 0)
                         : next_line(run, result, arguments_.file, arguments_.overrides, arguments_.restart.max))
                 << '\n';
  return status;
}

void TrainReport::ended_at_once(const config::RunConfig& run, int signal, const TrainedSteps& steps) const {
  if (has_printed_.test_and_set() || !arguments_.json) return;
  Json out = stopped_at_once(arguments_, signal, steps);
  out["folder"] = run.folder.string();
  print(out);
  result_out().flush();
}

std::string TrainReport::ended_before(int signal) const {
  return text_of(stopped_at_once(arguments_, signal, {}));
}

} // namespace triax::app
