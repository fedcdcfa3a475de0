// SPDX-License-Identifier: Apache-2.0
#include "report/metrics_reader.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "triax/error.hpp"

namespace triax::report {

namespace {

using Record = nlohmann::ordered_json; // groups stay in the order of the file

double number_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::optional<double> optional_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::uint64_t count_in(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::vector<GroupTraffic> traffic_in(const Record& record) {
  std::vector<GroupTraffic> out;
  const auto found = record.find("comm");
  if (found == record.end() || !found->is_object()) return out;
  for (const auto& [group, of] : found->items()) {
    if (!of.is_object()) continue;
    const auto plugin = of.find("plugin");
    out.push_back({group, plugin != of.end() && plugin->is_string() ? plugin->get<std::string>() : "",
                   count_in(of, "ops"), count_in(of, "bytes_out"), count_in(of, "bytes_in")});
  }
  return out;
}

} // namespace

std::optional<StepRecord> read_record(std::string_view line) {
  const Record record = Record::parse(line, nullptr, false);
  if (!record.is_object()) return {};
  const auto step = record.find("step"), skipped = record.find("skipped");
  if (step == record.end() || !step->is_number_integer()) return {};
  StepRecord out;
  out.step = step->get<std::int64_t>();
  out.loss = number_in(record, "loss");
  out.grad_norm = number_in(record, "grad_norm");
  out.lr = number_in(record, "lr");
  out.tokens_per_s = number_in(record, "tokens_per_s");
  out.step_ms = number_in(record, "step_ms");
  out.model_tflops = number_in(record, "model_tflops");
  out.bubble_rate = number_in(record, "bubble_rate");
  out.comm = traffic_in(record);
  out.eval_loss = optional_in(record, "eval_loss");
  out.eval_perplexity = optional_in(record, "eval_perplexity");
  if (const auto sample = record.find("sample"); sample != record.end() && sample->is_string())
    out.sample = sample->get<std::string>();
  out.loss_scale = optional_in(record, "loss_scale");
  out.skipped = skipped != record.end() && skipped->is_boolean() && skipped->get<bool>();
  return out;
}

MetricsRecords read_metrics(const std::filesystem::path& file, std::int64_t begin) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error("cannot be read", file.string());
  in.seekg(begin);
  MetricsRecords out;
  out.end = begin;
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    if (in.eof()) {
      out.ends_within_line = true;
      break;
    }
    out.end += std::ssize(line) + 1;
    if (std::optional<StepRecord> record = read_record(line)) {
      out.records.push_back(std::move(*record));
    } else if (++out.damaged_lines == 1) {
      out.first_damaged = number;
    }
  }
  if (in.bad()) throw Error("cannot be read", file.string());
  return out;
}

std::vector<StepRecord> last_of_each_step(std::vector<StepRecord> records) {
  std::ranges::stable_sort(records, {}, &StepRecord::step);
  std::vector<StepRecord> out;
  for (StepRecord& record : records) {
    if (!out.empty() && out.back().step == record.step) out.pop_back();
    out.push_back(std::move(record));
  }
  return out;
}

} // namespace triax::report
