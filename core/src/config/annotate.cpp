// SPDX-License-Identifier: Apache-2.0
// Adds the positions of its keys to a refusal, so that modules and plugins can report errors without knowing files.
#include <algorithm>
#include <utility>

#include "config/diagnostics.hpp"
#include "triax/text.hpp"

namespace triax::config {

namespace {

const ResolvedValue* find_value(const std::vector<ResolvedValue>& values, const std::string& key) {
  const auto found = std::ranges::find(values, key, &ResolvedValue::key);
  return found == values.end() ? nullptr : &*found;
}

/// "parallel.tensor is set at run.toml:20:3", "... by --set", "... has its default". Empty for a key without a value.
std::string origin_line(const std::string& key, const ResolvedValue* value) {
  if (!value) return {};
  if (value->at.line != 0) return text("{} is set at {}", key, to_text(value->at));
  if (value->origin == "default") return text("{} = {} is the default", key, value->value);
  if (value->origin == "derived") return text("{} = {} is derived", key, value->value);
  return text("{} is set by {}", key, value->origin);
}

} // namespace

std::string to_text(const Refusal& refusal, const Position& at, const std::vector<std::string>& origins) {
  const std::string where = to_text(at);
  std::string out = where.empty() ? refusal.message : where + ": " + refusal.message;
  for (const std::string& line : origins) out.append("\n  ").append(line);
  if (!refusal.hint.empty()) out.append("\n  ").append(refusal.hint);
  return out;
}

namespace {

/// A flag that stands for a key, such as "--data text", names the key's value: the message need not name the key too.
std::string without_key(const std::string& message, const std::string& key, const Position& at) {
  const bool stands_for_key = at.line == 0 && at.file.starts_with("--") && at.file != "--set";
  return stands_for_key && message.starts_with(key + ": ") ? message.substr(key.size() + 2) : message;
}

} // namespace

Diagnostic diagnose(const Refusal& refusal, const std::vector<ResolvedValue>& values) {
  Diagnostic out{{}, refusal, {}};
  // A default or derived value has no position: a flag leads before it, and a file before a flag.
  const auto rank = [&values](const std::string& key) {
    const ResolvedValue* value = find_value(values, key);
    if (!value || value->at.file.empty()) return 2;
    return value->at.line == 0 ? 1 : 0;
  };
  const auto lead = std::ranges::min_element(refusal.keys, {}, rank);
  const bool leads = lead != refusal.keys.end() && rank(*lead) < 2;
  if (leads) out.at = find_value(values, *lead)->at;
  if (leads) out.refusal.message = without_key(refusal.message, *lead, out.at);
  std::vector<std::string> origins;
  for (auto key = refusal.keys.begin(); key != refusal.keys.end(); ++key) {
    if (leads && key == lead) continue;
    if (std::string line = origin_line(*key, find_value(values, *key)); !line.empty()) origins.push_back(line);
  }
  out.text = to_text(out.refusal, out.at, origins);
  return out;
}

Diagnostic diagnostic(ErrorCode code, const Error& error) {
  const std::string where = error.where().empty() ? "" : error.where() + ": ";
  return {error.what(), {code, {}, where + error.message(), error.hint()}, {}};
}

Diagnostic located_diagnostic(const Position& at, Refusal refusal) {
  Diagnostic out{{}, std::move(refusal), at};
  out.text = to_text(out.refusal, out.at, {});
  return out;
}

Diagnostic file_diagnostic(ErrorCode code, const Error& error, const std::string& key) {
  Refusal refusal{code, {}, error.message(), error.hint()};
  if (!key.empty()) refusal.keys.push_back(key);
  return located_diagnostic({error.where()}, std::move(refusal));
}

Diagnostic diagnostic(ErrorCode code, std::string message, std::string hint) {
  return located_diagnostic({}, {code, {}, std::move(message), std::move(hint)});
}

} // namespace triax::config
