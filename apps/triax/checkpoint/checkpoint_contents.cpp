// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint_contents.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/weights.hpp"
#include "common/printable_line.hpp"
#include "common/table.hpp"
#include "report/units.hpp"
#include "triax/error.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;
using checkpoint::Manifest, checkpoint::SavedTensor;

std::string labelled(std::string label, const std::string& value) {
  constexpr std::size_t kWidth = 17;
  label.resize(kWidth, ' ');
  return "  " + label + printable_line(value) + '\n';
}

std::string layout_text(const Manifest& manifest) {
  std::string out;
  for (const auto& [axis, size] : manifest.layout) out += text("{}{} {}", out.empty() ? "" : ", ", axis, size);
  return out;
}

/// "comm-local 0.1.0, model-gpt 0.1.0". Axes are named where communicators differ.
std::string plugins_text(const Manifest& manifest) {
  constexpr std::string_view kAxis = "comm.";
  std::map<std::string, std::string> axes; // by plugin
  std::size_t communicators = 0;
  for (const auto& [use, plugin] : manifest.plugins) {
    std::string& of = axes[plugin];
    if (!use.starts_with(kAxis)) continue;
    communicators += of.empty();
    of += (of.empty() ? "" : ", ") + use.substr(kAxis.size());
  }
  std::string out;
  for (const auto& [plugin, of] : axes) {
    out += (out.empty() ? "" : ", ") + plugin;
    if (communicators > 1 && !of.empty()) out += " (" + of + ")";
  }
  return out;
}

std::uint64_t bytes_of_tensor(const SavedTensor& tensor) {
  return static_cast<std::uint64_t>(tensor.shape.elements()) * bytes_of(tensor.dtype);
}

std::string size_text(const Manifest& manifest) {
  std::map<std::string, std::uint64_t> states;
  for (const SavedTensor& tensor : manifest.content.tensors) states[tensor.state] += bytes_of_tensor(tensor);
  std::string out = ": weights " + report::bytes_text(states[checkpoint::kMasterState]);
  for (const auto& [state, size] : states)
    if (state != checkpoint::kMasterState) out += ", " + state + " " + report::bytes_text(size);
  const std::size_t files = manifest.content.files.size();
  return text("{} in {} file{}", report::bytes_text(total_bytes(manifest.content)), files, files == 1 ? "" : "s") + out;
}

std::string training_text(const Manifest& manifest) {
  const checkpoint::TrainingState& training = manifest.training;
  std::string out = labelled("step", grouped(training.step)) +
                    labelled("tokens", text("{} in {} samples", grouped(manifest.tokens), grouped(training.samples)));
  if (training.optimizer_steps != training.step) out += labelled("optimizer steps", grouped(training.optimizer_steps));
  if (training.loss_scale != 1)
    out += labelled("loss scale", text("{}, {} steps since it changed, hysteresis {}", training.loss_scale,
                                       training.good_steps, training.hysteresis));
  for (const auto& [use, state] : training.plugins)
    out += labelled("state of " + use, text("a text of {}", report::bytes_text(state.size())));
  return out;
}

/// The states of a parameter, which have its shape and one type.
struct ParameterRow {
  std::string parameter;
  Shape shape;
  std::string types, states; // "f32", "master, m, v"
};

std::vector<ParameterRow> parameter_rows(const Manifest& manifest) {
  std::vector<ParameterRow> out;
  std::map<std::string, std::size_t> index;
  for (const SavedTensor* tensor : checkpoint::weights_of(manifest)) {
    index[tensor->parameter] = out.size();
    out.push_back({tensor->parameter, tensor->shape, std::string(name_of(tensor->dtype)), tensor->state});
  }
  for (const SavedTensor& tensor : manifest.content.tensors) {
    if (tensor.state == checkpoint::kMasterState) continue;
    const auto [found, is_new] = index.try_emplace(tensor.parameter, out.size());
    if (is_new) out.push_back({tensor.parameter, tensor.shape, {}, {}});
    ParameterRow& row = out[found->second];
    row.states += (row.states.empty() ? "" : ", ") + tensor.state;
    const std::string type(name_of(tensor.dtype));
    if (row.types.find(type) == std::string::npos) row.types += (row.types.empty() ? "" : ", ") + type;
  }
  return out;
}

/// The first number of a text, with what is before and after it.
struct NumberedName {
  std::string before, number, after;
};

NumberedName split_name(const std::string& name) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto begin = std::ranges::find_if(name, is_digit), end = std::find_if_not(begin, name.end(), is_digit);
  return {{name.begin(), begin}, {begin, end}, {end, name.end()}};
}

/// Parameters that differ in the number of their layer.
struct ParameterGroup {
  NumberedName first;
  std::string last; // number
  std::int64_t count = 0;
  const ParameterRow* row = nullptr; // the row of the first parameter
};

/// One row for "block 0/w" to "block 23/w", if they are otherwise equal.
std::vector<std::vector<std::string>> grouped_cells(const std::vector<ParameterRow>& rows) {
  std::vector<ParameterGroup> groups;
  std::map<std::vector<std::string>, std::size_t> index;
  for (const ParameterRow& row : rows) {
    NumberedName name = split_name(row.parameter);
    const std::string kind = name.number.empty() ? "" : "#";
    const auto [found, is_new] =
        index.try_emplace({name.before, kind, name.after, to_text(row.shape), row.types, row.states}, groups.size());
    if (is_new) groups.push_back({name, {}, 0, &row});
    groups[found->second].last = name.number;
    ++groups[found->second].count;
  }
  std::vector<std::vector<std::string>> cells = {{"parameter", "tensors", "shape", "type", "states"}};
  for (const ParameterGroup& group : groups) {
    const std::string numbers = group.first.number + (group.count > 1 ? " to " + group.last : "");
    cells.push_back({group.first.before + numbers + group.first.after, grouped(group.count), to_text(group.row->shape),
                     group.row->types, group.row->states});
  }
  return cells;
}

std::string complete_text(const Manifest& manifest, const std::vector<ParameterRow>& rows) {
  std::vector<std::vector<std::string>> cells = {{"parameter", "shape", "type", "states"}};
  for (const ParameterRow& row : rows) cells.push_back({row.parameter, to_text(row.shape), row.types, row.states});
  std::string out = table(std::move(cells)) + '\n';
  cells = {{"file", "bytes"}};
  for (const checkpoint::SavedFile& file : manifest.content.files)
    cells.push_back({file.name, grouped(static_cast<long long>(file.bytes))});
  out += table(std::move(cells)) + '\n';
  cells = {{"key of the run", "value"}};
  for (const auto& [key, value] : manifest.config) cells.push_back({key, "= " + value}); // a text: aligned to the left
  return out + table(std::move(cells));
}

} // namespace

std::string contents_text(const checkpoint::TensorReader& reader, bool all) {
  const Manifest& manifest = reader.manifest();
  const std::vector<ParameterRow> rows = parameter_rows(manifest);
  std::string out = printable_line(reader.folder().string()) + '\n' + training_text(manifest) +
                    labelled("created", text("{} by triax {}", manifest.created, manifest.engine)) +
                    labelled("parameters", grouped(checkpoint::parameters_of(manifest))) +
                    labelled("size", size_text(manifest)) + labelled("layout", layout_text(manifest)) +
                    labelled("plugins", plugins_text(manifest));
  for (const std::string& folder : manifest.mean_of) out += labelled("mean of", folder);
  out += '\n';
  if (all) return out + complete_text(manifest, rows);
  return out + table(grouped_cells(rows)) + "--all: every tensor, the files, and the keys of the run\n";
}

std::string contents_json(const checkpoint::TensorReader& reader) {
  const Manifest& manifest = reader.manifest();
  const checkpoint::TrainingState& training = manifest.training;
  Json files = Json::array(), tensors = Json::array();
  for (const checkpoint::SavedFile& file : manifest.content.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  for (const SavedTensor& tensor : manifest.content.tensors) {
    Json shape = Json::array();
    for (int dim = 0; dim < tensor.shape.rank(); ++dim) shape.push_back(tensor.shape[dim]);
    tensors.push_back({{"parameter", tensor.parameter},
                       {"state", tensor.state},
                       {"dtype", name_of(tensor.dtype)},
                       {"shape", std::move(shape)}});
  }
  const Json out = {{"folder", reader.folder().string()},
                    {"step", training.step},
                    {"samples", training.samples},
                    {"tokens", manifest.tokens},
                    {"optimizer_steps", training.optimizer_steps},
                    {"loss_scale", training.loss_scale},
                    {"plugin_states", training.plugins},
                    {"created", manifest.created},
                    {"engine", manifest.engine},
                    {"parameters", checkpoint::parameters_of(manifest)},
                    {"layout", manifest.layout},
                    {"plugins", manifest.plugins},
                    {"mean_of", manifest.mean_of},
                    {"files", std::move(files)},
                    {"tensors", std::move(tensors)},
                    {"config", manifest.config}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace triax::app
