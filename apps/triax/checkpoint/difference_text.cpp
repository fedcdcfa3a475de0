// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/difference_text.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/printable_line.hpp"
#include "common/table.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;
using checkpoint::CheckpointDifference, checkpoint::TensorDifference, checkpoint::ValueDifference;

constexpr std::size_t kShownTensors = 20;

std::string three_digits_text(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3g", value);
  return out;
}

std::string values_table(const char* heading, const std::vector<ValueDifference>& values) {
  if (values.empty()) return {};
  std::vector<std::vector<std::string>> cells = {{heading, "first", "second"}};
  for (const ValueDifference& of : values)
    cells.push_back({of.key, of.first.value_or("not set"), of.second.value_or("not set")});
  return table(std::move(cells));
}

std::string names_text(const char* where, const std::vector<std::string>& names, bool all) {
  if (names.empty()) return {};
  std::string out = text("  {} tensors are only in the {}: ", grouped(static_cast<long long>(names.size())), where);
  if (names.size() == 1) out = text("  1 tensor is only in the {}: ", where);
  const std::size_t shown = all ? names.size() : std::min<std::size_t>(names.size(), 4);
  for (std::size_t i = 0; i < shown; ++i) out += (i > 0 ? ", " : "") + printable_line(names[i]);
  return out + (shown < names.size() ? ", ...\n" : "\n");
}

/// Tensors that cannot be compared by value come first.
bool differs_more(const TensorDifference& a, const TensorDifference& b) {
  if (a.is_same_shape() != b.is_same_shape()) return b.is_same_shape();
  if ((a.not_finite > 0) != (b.not_finite > 0)) return a.not_finite > 0;
  return a.max_absolute > b.max_absolute;
}

std::string type_text(const TensorDifference& of) {
  const std::string first = text("{}{}", name_of(of.first_type), to_text(of.first_shape));
  const std::string second = text("{}{}", name_of(of.second_type), to_text(of.second_shape));
  return first == second ? first : first + " and " + second;
}

std::vector<std::string> tensor_cells(const TensorDifference& of) {
  const std::string name = text("{} ({})", of.parameter, of.state);
  if (!of.is_same_shape()) return {name, type_text(of), "?", "?", "?"};
  const std::string not_finite = of.not_finite > 0 ? text(" ({} not finite)", grouped(of.not_finite)) : std::string();
  return {name, type_text(of), grouped(of.differing) + not_finite, three_digits_text(of.max_absolute),
          three_digits_text(of.max_relative)};
}

std::string tensors_table(std::vector<TensorDifference> tensors, bool all) {
  if (tensors.empty()) return {};
  const std::size_t shown = all ? tensors.size() : std::min(tensors.size(), kShownTensors);
  if (shown < tensors.size()) std::ranges::stable_sort(tensors, differs_more);
  std::vector<std::vector<std::string>> cells = {
      {"tensor", "type", "differing elements", "max abs difference", "max rel difference"}};
  for (std::size_t i = 0; i < shown; ++i) cells.push_back(tensor_cells(tensors[i]));
  const std::string rest =
      shown < tensors.size() ? text("  ... and {} more, which differ less: --all\n", tensors.size() - shown) : "";
  return table(std::move(cells)) + rest;
}

std::string verdict(const CheckpointDifference& found, bool weights_only) {
  const char* what = weights_only ? "tensors of weights" : "tensors";
  if (found.is_equal())
    return text("bit-equal: {} {}{}\n", grouped(static_cast<long long>(found.compared)), what,
                weights_only ? "" : ", and the state of training");
  if (found.tensors.empty() && found.only_first.empty() && found.only_second.empty())
    return text("bit-equal: {} {}; the state of training differs\n", grouped(static_cast<long long>(found.compared)),
                what);
  return text("{} of {} {} in both differ\n", grouped(static_cast<long long>(found.tensors.size())),
              grouped(static_cast<long long>(found.compared)), what);
}

Json values_json(const std::vector<ValueDifference>& values) {
  Json out = Json::array();
  for (const ValueDifference& of : values)
    out.push_back({{"key", of.key},
                   {"first", of.first ? Json(*of.first) : Json()},
                   {"second", of.second ? Json(*of.second) : Json()}});
  return out;
}

Json tensor_json(const TensorDifference& of) {
  Json out = {{"parameter", of.parameter},
              {"state", of.state},
              {"first", text("{}{}", name_of(of.first_type), to_text(of.first_shape))},
              {"second", text("{}{}", name_of(of.second_type), to_text(of.second_shape))}};
  if (!of.is_same_shape()) return out;
  out["elements"] = of.first_shape.elements();
  out["differing"] = of.differing;
  out["not_finite"] = of.not_finite;
  out["max_absolute"] = of.max_absolute;
  out["max_relative"] = of.max_relative;
  return out;
}

} // namespace

std::string difference_text(const CheckpointDifference& found, const ComparedFolders& folders,
                            const DifferenceStyle& style) {
  return text("first   {}\nsecond  {}\n", printable_line(folders.first.string()),
              printable_line(folders.second.string())) +
         values_table("key of the run", found.config) + values_table("state of training", found.training) +
         names_text("first", found.only_first, style.all) + names_text("second", found.only_second, style.all) +
         tensors_table(found.tensors, style.all) + verdict(found, style.weights_only);
}

std::string difference_json(const CheckpointDifference& found, const ComparedFolders& folders) {
  Json tensors = Json::array();
  for (const TensorDifference& of : found.tensors) tensors.push_back(tensor_json(of));
  const Json out = {{"first", folders.first.string()},     {"second", folders.second.string()},
                    {"equal", found.is_equal()},           {"compared", found.compared},
                    {"config", values_json(found.config)}, {"training", values_json(found.training)},
                    {"only_first", found.only_first},      {"only_second", found.only_second},
                    {"tensors", std::move(tensors)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace triax::app
