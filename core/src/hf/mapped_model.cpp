// SPDX-License-Identifier: Apache-2.0
#include "hf/mapped_model.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "config/core_keys.hpp"
#include "config/plugin_tables.hpp"
#include "hf/hints.hpp"
#include "hf/name_pattern.hpp"
#include "hf/table_checks.hpp"
#include "plugin/call_guard.hpp"
#include "plugin/option_text.hpp"
#include "plugin/probe.hpp"
#include "plugin/probe_process.hpp"
#include "triax/log.hpp"

namespace triax::hf {

namespace {

constexpr const char* kVocab = "vocab";

const triax_option& vocab_row() {
  for (const config::CoreKey& key : config::find_core_table("model")->keys)
    if (std::string_view(key.option.name) == kVocab) return key.option;
  throw Error("model.vocab is not a key of the core");
}

OptionRows rows_of(const plugin::Library& library) {
  OptionRows out;
  for (const triax_option& option : library.options) out[option.name] = option;
  out[kVocab] = vocab_row();
  return out;
}

/// Smallest valid options, for an object that only returns its tables.
Options smallest_options(const plugin::Library& library) {
  Options out;
  for (const triax_option& option : library.options) {
    std::string text = option.default_value ? option.default_value : "";
    const bool has_limits = option.min <= option.max, is_list = (option.type & TRIAX_OPTION_LIST) != 0;
    if (!option.default_value && option.type == TRIAX_OPTION_INT)
      text = has_limits ? std::to_string(static_cast<std::int64_t>(option.min)) : "1";
    if (!option.default_value && option.type == TRIAX_OPTION_FLOAT) text = has_limits ? to_text(option.min) : "1";
    if (!option.default_value && option.type == TRIAX_OPTION_BOOL) text = "false";
    if (!option.default_value && is_list) text = "[]";
    if (!option.default_value && option.choices)
      text = std::string(option.choices, std::string(option.choices).find('|'));
    out.set(option.name, plugin::parse_option(option, text));
  }
  return out;
}

Options options_with(const plugin::Library& library, const OptionTexts& texts) {
  Options out;
  for (const triax_option& option : library.options) {
    const auto given = texts.find(option.name);
    if (given == texts.end() && !option.default_value)
      throw Error(text("the tables of {} do not set its option {}, which has no default", library.descriptor->name,
                       option.name),
                  library.file.string(), kDefect);
    out.set(option.name, plugin::parse_option(option, given != texts.end() ? given->second : option.default_value));
  }
  return out;
}

plugin::Instance<Model> make_model(const plugin::Library& library, const Options& options, const Layout& layout) {
  return plugin::create<Model>(library, PluginContext{options, null_log(), layout, 0, 1});
}

/// Null without the interface.
HfMapping* mapping_of(Model& model, const std::string& name) {
  return plugin::guarded_call(name, "extension", [&] { return find_extension<HfMapping>(model); });
}

std::vector<HfArchitecture> ask_architectures(const plugin::Library& library) {
  const std::string name = library.descriptor->name;
  const Options options = smallest_options(library);
  const Layout layout = Layout::ptd(1, 1, 1);
  const plugin::Instance<Model> model = make_model(library, options, layout);
  const HfMapping* const mapping = mapping_of(*model, name);
  if (!mapping) return {};
  return plugin::guarded_call(name, "architectures", [&] { return mapping->architectures(); });
}

TableOwner owner_of(const MappedPlugin& plugin) {
  return {plugin.name, plugin.library->file.string()};
}

/// A parameter of the engine.
struct ModelParameter {
  std::string name;
  Shape shape;
};

/// Loads the file and asks it, first in a child process.
MappedPlugin ask_plugin(const std::filesystem::path& file) {
  const auto failures = plugin::probe_loading({&file, 1});
  if (const auto failed = failures.find(file); failed != failures.end())
    throw Error(failed->second.reason(), file.string(), failed->second.hint(file));
  MappedPlugin out;
  out.library = &plugin::load(file, Model::kKind);
  out.name = out.library->descriptor->name;
  const plugin::ProbeResult probe = plugin::run_probe(
      [&] {
        ask_architectures(*out.library);
        return std::string();
      },
      plugin::ProbeOutput::captured);
  if (probe.failure) throw Error(probe.failure->reason(), file.string(), probe.failure->hint(file));
  out.rows = rows_of(*out.library);
  out.architectures = ask_architectures(*out.library);
  check_architectures(out.architectures, out.rows, owner_of(out));
  return out;
}

/// The row that matches a parameter, with {} replaced by its block number.
HfParameter row_of(const std::vector<HfParameter>& rows, const std::string& parameter) {
  std::optional<HfParameter> out;
  for (const HfParameter& row : rows) {
    const std::optional<std::string> number = number_in(parameter, row.parameter);
    if (!number) continue;
    if (out) throw Error(text("parameter \"{}\" matches two rows", parameter));
    out = row;
    out->parameter = parameter;
    for (std::string& tensor : out->tensors) tensor = with_number(tensor, *number);
  }
  if (!out) throw Error(text("parameter \"{}\" has no row", parameter));
  return std::move(*out);
}

/// Where all parameters of the model are, by these rows. Throws Error without a location.
std::vector<StoredParameter> stored_parameters(const std::vector<HfParameter>& rows,
                                               const std::vector<ModelParameter>& parameters) {
  std::vector<StoredParameter> out;
  std::set<std::string> tensors;
  for (const auto& [name, shape] : parameters) {
    HfParameter row = row_of(rows, name);
    for (const std::string& tensor : row.tensors)
      if (!tensors.insert(tensor).second) throw Error(text("tensor \"{}\" belongs to two parameters", tensor));
    const std::int64_t columns = shape.rank() > 1 ? shape[-1] : 1;
    RowMap map(row, columns == 0 ? 0 : shape.elements() / columns);
    out.push_back({name, shape, std::move(row), std::move(map)});
  }
  return out;
}

bool is_later_side(std::span<const Tie> ties, int layer, const std::string& name) {
  return std::ranges::any_of(ties, [&](const Tie& tie) {
    return (tie.layer_a == layer && tie.param_a == name && tie.layer_b < layer) ||
           (tie.layer_b == layer && tie.param_b == name && tie.layer_a < layer);
  });
}

} // namespace

const HfArchitecture* MappedPlugin::find(const std::string& architecture) const {
  const auto found = std::ranges::find(architectures, architecture, &HfArchitecture::name);
  return found == architectures.end() ? nullptr : &*found;
}

std::vector<plugin::SearchFolder> search_folders_after(const std::vector<std::filesystem::path>& paths) {
  std::vector<plugin::SearchFolder> given;
  given.reserve(paths.size());
  for (const std::filesystem::path& path : paths) given.push_back({path, "--path"});
  return plugin::search_folders(given);
}

MappedPlugin mapped_plugin(const std::string& given, const std::vector<plugin::SearchFolder>& folders) {
  MappedPlugin out = ask_plugin(plugin::locate(given, folders, {}, plugin::FolderChoice::flag).file);
  if (out.architectures.empty())
    throw Error(
        text("{} does not offer HfMapping, so Triax does not know how transformers stores this model", out.name),
        out.library->file.string(), "ask its author to implement HfMapping (docs/plugins/models.md)");
  return out;
}

std::vector<MappedPlugin> mapped_plugins(const std::vector<plugin::SearchFolder>& folders,
                                         std::vector<std::string>& notes) {
  std::vector<MappedPlugin> out;
  std::set<std::string> names; // a file of the same name in a later folder is not used
  for (const plugin::SearchFolder& searched : folders)
    for (const std::filesystem::path& file : plugin::candidates(searched.folder)) {
      const std::string name = file.stem().string();
      if (!name.starts_with(config::plugin_prefix(Model::kKind)) || !names.insert(name).second) continue;
      try {
        MappedPlugin asked = ask_plugin(file);
        if (!asked.architectures.empty()) out.push_back(std::move(asked));
      } catch (const Error& error) {
        notes.emplace_back(error.what());
      }
    }
  return out;
}

Shape StoredParameter::tensor_shape(std::size_t tensor) const {
  const std::int64_t rows = map.rows_of(tensor);
  if (shape.rank() < 2) return {rows};
  return row.transposed ? Shape{columns(), rows} : Shape{rows, columns()};
}

MappedModel::MappedModel(const MappedPlugin& plugin, const OptionTexts& texts)
    : plugin_(plugin),
      vocab_(std::get<std::int64_t>(plugin::parse_option(vocab_row(), texts.at(kVocab)))),
      options_(options_with(*plugin.library, texts)),
      model_(make_model(*plugin.library, options_, layout_)),
      mapping_(mapping_of(*model_, plugin.name)) {
  if (!mapping_)
    throw Error(text("{} offers HfMapping with its default options, but not with those of this model", plugin.name),
                plugin.library->file.string(), kDefect);
}

Refusals MappedModel::refusals() const {
  return plugin::guarded_call(plugin_.name, "supports",
                              [&] { return model_->supports({.vocab = vocab_, .has_weights = true}, layout_); });
}

int MappedModel::blocks() const {
  return plugin::guarded_call(plugin_.name, "info", [&] { return model_->info().blocks; });
}

OptionTexts MappedModel::resolved_options() const {
  return plugin::guarded_call(plugin_.name, "resolved_options", [&] {
    OptionTexts out;
    for (const auto& [option, value] : mapping_->resolved_options()) {
      if (!plugin_.rows.contains(option))
        throw Error(
            text("resolved_options() of {} names the option \"{}\", which it does not have", plugin_.name, option),
            plugin_.library->file.string(), kDefect);
      out[option] = value;
    }
    return out;
  });
}

std::vector<HfParameter> MappedModel::rows(const HfArchitecture& architecture) const {
  return plugin::guarded_call(plugin_.name, "parameters", [&] { return mapping_->parameters(architecture.name); });
}

std::vector<StoredParameter> MappedModel::parameters(const HfArchitecture& architecture) const {
  const std::vector<HfParameter> rows = this->rows(architecture);
  const TableOwner owner = owner_of(plugin_);
  check_parameters(rows, owner);
  const std::vector<ModelParameter> parameters = plugin::guarded_call(plugin_.name, "layer", [&] {
    const std::int64_t sequence = model_->info().sequence;
    const LayerContext context{.layout = layout_, .vocab = vocab_, .sequence = sequence, .max_rows = sequence};
    std::vector<ModelParameter> out;
    for (int i = 0; i < model_->count(); ++i) {
      const std::unique_ptr<Layer> layer = model_->layer(i, context);
      for (const ParamSpec& spec : layer->params())
        if (!is_later_side(model_->ties(), i, spec.name))
          out.push_back({text("{}/{}", layer->name(), spec.name), spec.global});
    }
    return out;
  });
  try {
    return stored_parameters(rows, parameters);
  } catch (const Error& error) {
    throw Error(text("parameters() of {}: {}", owner.plugin, error.message()), owner.file, kDefect);
  }
}

} // namespace triax::hf
