// SPDX-License-Identifier: Apache-2.0
#include "report/metrics_file.hpp"

#include <charconv>
#include <cmath>
#include <span>
#include <utility>

#include "os/input_file.hpp"
#include "report/json.hpp"
#include "triax/error.hpp"

namespace triax::report {

namespace {

JsonObject traffic(const std::vector<GroupTraffic>& groups) {
  JsonObject out;
  for (const GroupTraffic& group : groups) {
    JsonObject one;
    one.set("plugin", group.plugin);
    one.set("ops", group.ops).set("bytes_out", group.bytes_out).set("bytes_in", group.bytes_in);
    out.set(group.group, std::move(one));
  }
  return out;
}

constexpr std::string_view kBegin = "{\"step\":"; // as to_json() writes it

std::string content_of(const std::filesystem::path& file) {
  const os::InputFile in(file);
  std::string out(in.bytes(), '\0');
  in.read_at(0, std::as_writable_bytes(std::span(out)));
  return out;
}

/// The last keys of a record.
void set_evaluation(JsonObject& out, const StepRecord& record) {
  if (record.eval_loss) out.set("eval_loss", *record.eval_loss);
  if (record.eval_perplexity) out.set("eval_perplexity", *record.eval_perplexity);
  if (record.sample) out.set("sample", *record.sample);
}

} // namespace

std::string to_json(const StepRecord& record) {
  JsonObject out;
  try {
    out.set("step", record.step);
    const bool has_loss = !record.skipped || std::isfinite(record.loss);
    has_loss ? out.set("loss", record.loss) : out.set_null("loss");
    record.skipped ? out.set_null("grad_norm") : out.set("grad_norm", record.grad_norm);
    out.set("lr", record.lr);
    out.set("tokens_per_s", record.tokens_per_s).set("step_ms", record.step_ms);
    out.set("model_tflops", record.model_tflops).set("bubble_rate", record.bubble_rate);
    if (record.loss_scale) out.set("loss_scale", *record.loss_scale);
    if (record.loss_scale || record.skipped) out.set("skipped", record.skipped);
    out.set("comm", traffic(record.comm));
    set_evaluation(out, record);
  } catch (const Error& error) {
    throw Error(error.message(), text("step {}", record.step));
  }
  return out.line();
}

std::optional<std::string> with_evaluation(const std::filesystem::path& file, const StepRecord& record) {
  std::string content = content_of(file);
  if (!content.ends_with("}\n")) return std::nullopt;
  const std::size_t before = content.rfind('\n', content.size() - 2), begin = before == content.npos ? 0 : before + 1;
  const std::string_view last = std::string_view(content).substr(begin);
  if (!last.starts_with(text("{}{},", kBegin, record.step)) || last.find("\"eval_loss\"") != last.npos)
    return std::nullopt;
  JsonObject evaluation;
  set_evaluation(evaluation, record);
  const std::string keys = evaluation.line().substr(1); // without the first brace
  content.resize(content.size() - 2);
  return content + (keys == "}" ? "" : ",") + keys + '\n';
}

KeptRecords records_up_to(const std::filesystem::path& file, std::int64_t step) {
  const std::string content = content_of(file);
  std::string_view rest = content;
  while (true) {
    const std::size_t end = rest.find('\n');
    std::int64_t of = 0;
    if (end == std::string_view::npos || !rest.starts_with(kBegin)) break;
    const char* const digits = rest.data() + kBegin.size();
    if (std::from_chars(digits, rest.data() + end, of).ec != std::errc() || of > step) break;
    rest.remove_prefix(end + 1);
  }
  if (rest.empty()) return {{}, true};
  return {content.substr(0, content.size() - rest.size()), false};
}

MetricsFile::MetricsFile(const std::filesystem::path& file, os::AppendFile::Observer observer)
    : file_(file, std::move(observer)) {}

void MetricsFile::write(const StepRecord& record) {
  ++records_;
  file_.append(to_json(record), text("the record of step {}", record.step));
}

} // namespace triax::report
