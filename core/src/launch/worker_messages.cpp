// SPDX-License-Identifier: Apache-2.0
#include "launch/worker_messages.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "os/stop_signals.hpp"
#include "report/traffic.hpp"
#include "triax/error.hpp"

namespace triax::launch {

namespace {

using Json = nlohmann::json;

template <class Read>
auto reading(std::string_view line, Read read) {
  try {
    return read(Json::parse(line));
  } catch (const Json::exception&) { // its text names the library
    throw Error(text("malformed: {}", line));
  }
}

template <class Read>
auto reading_message(const control::WorkerMessage& sent, Read read) {
  try {
    return read(sent.text);
  } catch (const Error& error) {
    throw Error(error.message(), text("message from rank {}", sent.rank), "use the same build of Triax on all ranks");
  }
}

Json of(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<double> maybe(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

template <class Number>
std::optional<Number> read_number(std::string_view line) {
  Number out = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out);
  return error == std::errc() && end == line.data() + line.size() ? std::optional(out) : std::nullopt;
}

std::int64_t read_step_number(std::string_view line) {
  const std::optional<std::int64_t> step = read_number<std::int64_t>(line);
  if (!step || *step < 0) throw Error(text("invalid step: \"{}\"", line));
  return *step;
}

int read_signal(std::string_view line) {
  const std::optional<int> signal = read_number<int>(line);
  if (!signal || std::ranges::find(os::kStopSignals, *signal) == std::end(os::kStopSignals))
    throw Error(text("invalid number of a signal: \"{}\"", line));
  return *signal;
}

} // namespace

std::string to_line(const report::StepRecord& record) {
  return Json{{"step", record.step},
              {"loss", record.loss},
              {"tokens_per_s", record.tokens_per_s},
              {"step_ms", record.step_ms},
              {"eval_loss", of(record.eval_loss)},
              {"skipped", record.skipped}}
      .dump();
}

report::StepRecord read_step(std::string_view line) {
  return reading(line, [](const Json& sent) {
    report::StepRecord out;
    out.step = sent.at("step").get<std::int64_t>();
    out.loss = maybe(sent.at("loss")).value_or(std::numeric_limits<double>::quiet_NaN()); // null: not finite
    out.tokens_per_s = sent.at("tokens_per_s").get<double>();
    out.step_ms = sent.at("step_ms").get<double>();
    out.eval_loss = maybe(sent.at("eval_loss"));
    out.skipped = sent.at("skipped").get<bool>();
    return out;
  });
}

std::string to_line(const train::LoopResult& result) {
  Json traffic = Json::array();
  for (const report::GroupTraffic& group : result.traffic)
    traffic.push_back({group.group, group.plugin, group.ops, group.bytes_out, group.bytes_in});
  return Json{{"steps", result.steps},
              {"last_step", result.last_step},
              {"out_of_time", result.out_of_time},
              {"checkpoint", result.checkpoint},
              {"evaluated", {result.eval_samples, result.eval_tokens, result.eval_bytes}},
              {"first_loss", result.first_loss},
              {"last_loss", result.last_loss},
              {"eval_loss", of(result.eval_loss)},
              {"owes_evaluation", result.owes_evaluation},
              {"tokens_per_s", result.tokens_per_s},
              {"signal", result.signal},
              {"traffic", traffic},
              {"skipped", result.skipped},
              {"metrics", result.metrics},
              {"records", result.records},
              {"missing",
               {result.missing.records, result.missing.log_lines, result.missing.timelines, result.missing.checkpoints,
                result.missing.events}}}
      .dump(-1, ' ', false, Json::error_handler_t::replace); // a path may contain invalid UTF-8
}

train::LoopResult read_result(std::string_view line) {
  return reading(line, [](const Json& sent) {
    train::LoopResult out;
    out.steps = sent.at("steps").get<std::int64_t>();
    out.last_step = sent.at("last_step").get<std::int64_t>();
    out.out_of_time = sent.at("out_of_time").get<bool>();
    out.checkpoint = sent.at("checkpoint").get<std::string>();
    out.eval_samples = sent.at("evaluated").at(0).get<std::int64_t>();
    out.eval_tokens = sent.at("evaluated").at(1).get<std::int64_t>();
    out.eval_bytes = sent.at("evaluated").at(2).get<std::int64_t>();
    out.first_loss = sent.at("first_loss").get<double>();
    out.last_loss = sent.at("last_loss").get<double>();
    out.eval_loss = maybe(sent.at("eval_loss"));
    out.owes_evaluation = sent.at("owes_evaluation").get<bool>();
    out.tokens_per_s = sent.at("tokens_per_s").get<double>();
    out.signal = sent.at("signal").get<int>();
    out.skipped = sent.at("skipped").get<std::int64_t>();
    out.metrics = sent.at("metrics").get<std::string>();
    out.records = sent.at("records").get<std::int64_t>();
    const Json& missing = sent.at("missing");
    out.missing = {missing.at(0).get<std::int64_t>(), missing.at(1).get<std::int64_t>(),
                   missing.at(2).get<std::int64_t>(), missing.at(3).get<std::int64_t>(),
                   missing.at(4).get<std::int64_t>()};
    for (const Json& group : sent.at("traffic"))
      out.traffic.push_back({group.at(0).get<std::string>(), group.at(1).get<std::string>(),
                             group.at(2).get<std::uint64_t>(), group.at(3).get<std::uint64_t>(),
                             group.at(4).get<std::uint64_t>()});
    return out;
  });
}

int signal_in(const control::WorkerMessage& sent) {
  return reading_message(sent, read_signal);
}

std::optional<report::StepRecord> JobResult::take(const control::WorkerMessage& sent) {
  return reading_message(sent, [&](std::string_view) { return read(sent); });
}

std::optional<report::StepRecord> JobResult::read(const control::WorkerMessage& sent) {
  if (sent.topic == kStep) {
    report::StepRecord record = read_step(sent.text);
    last_step_ = record.step;
    has_step_ = true;
    return record;
  }
  if (sent.topic == kEvaluating || sent.topic == kContinuing) {
    last_step_ = read_step_number(sent.text);
    has_step_ = has_step_ || sent.topic == kEvaluating;
    return std::nullopt;
  }
  if (sent.topic != kResult) throw Error(text("unknown topic \"{}\"", sent.topic));
  const train::LoopResult result = read_result(sent.text);
  report::add_traffic(traffic_, result.traffic);
  missing_.add(result.missing);
  if (sent.rank == 0) first_ = result;
  return std::nullopt;
}

std::optional<train::LoopResult> JobResult::together() const {
  std::optional<train::LoopResult> out = first_;
  if (out) out->traffic = traffic_;
  if (out) out->missing = missing_;
  return out;
}

} // namespace triax::launch
