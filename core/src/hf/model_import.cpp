// SPDX-License-Identifier: Apache-2.0
#include "hf/model_import.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "checkpoint/block_converter.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/weights.hpp"
#include "hf/carried_files.hpp"
#include "hf/name_pattern.hpp"
#include "hf/run_toml.hpp"
#include "plugin/option_text.hpp"
#include "triax/version.h"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

using checkpoint::ByteSink, checkpoint::StopRequest;

constexpr DType kMaster = DType::f32;

void refuse_run_output(const fs::path& run) {
  std::error_code unknown;
  if (run.extension() != ".toml")
    throw Error(text("--run must name a file that ends with .toml, got \"{}\"", run), {}, "name the TOML to write");
  if (fs::symlink_status(run, unknown).type() != fs::file_type::not_found)
    throw Error("exists", run.string(), "remove it, or name another file");
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool is_of(const HfArchitecture& architecture, const ModelConfig& config) {
  if (config.architectures.empty()) return architecture.model_type == config.model_type;
  return std::ranges::find(config.architectures, architecture.name) != config.architectures.end();
}

/// Passes the elements of one parameter on, in the order of the engine.
class ParameterSource {
 public:
  ParameterSource(const ModelTensors& files, const StoredParameter& parameter,
                  const std::vector<const ModelTensors::Tensor*>& tensors)
      : files_(files), parameter_(parameter), tensors_(tensors), whole_(tensors.size()) {
    for (const ModelTensors::Tensor* tensor : tensors)
      converters_.emplace_back(tensor->entry.name, tensor->entry.dtype, kMaster);
  }

  void pass(const ByteSink& sink, const StopRequest& stop) {
    const std::int64_t rows = parameter_.shape.elements() / parameter_.columns();
    const std::int64_t most = std::max<std::int64_t>(checkpoint::kBlockElements / parameter_.columns(), 1);
    for (std::int64_t row = 0; row < rows;) {
      checkpoint::check_stop(stop);
      RowRun run = parameter_.map.from_parameter(row);
      run.count = std::min(run.count, most);
      if (parameter_.row.transposed && parameter_.shape.rank() > 1) {
        gather(run);
      } else {
        read(run);
      }
      sink(converters_[run.tensor].convert(block_));
      row += run.count;
    }
  }

 private:
  std::size_t width(const RowRun& run) const { return bytes_of(tensors_[run.tensor]->entry.dtype); }

  void read(const RowRun& run) {
    const std::size_t row_bytes = static_cast<std::size_t>(parameter_.columns()) * width(run);
    block_.resize(static_cast<std::size_t>(run.count) * row_bytes);
    files_.read(*tensors_[run.tensor], static_cast<std::uint64_t>(run.row) * row_bytes, block_);
  }

  /// Rows are columns of the file's tensor, which is read as a whole.
  void gather(const RowRun& run) {
    const std::size_t bytes = width(run);
    std::vector<std::byte>& whole = whole_[run.tensor];
    if (whole.empty()) {
      whole.resize(tensors_[run.tensor]->entry.bytes());
      files_.read(*tensors_[run.tensor], 0, whole);
    }
    const auto columns = static_cast<std::size_t>(parameter_.columns()), count = static_cast<std::size_t>(run.count),
               stride = static_cast<std::size_t>(parameter_.map.rows_of(run.tensor)),
               first = static_cast<std::size_t>(run.row);
    block_.resize(count * columns * bytes);
    for (std::size_t column = 0; column < columns; ++column)
      for (std::size_t row = 0; row < count; ++row)
        std::memcpy(block_.data() + (row * columns + column) * bytes,
                    whole.data() + (column * stride + first + row) * bytes, bytes);
  }

  const ModelTensors& files_;
  const StoredParameter& parameter_;
  const std::vector<const ModelTensors::Tensor*>& tensors_;
  std::vector<checkpoint::BlockConverter> converters_;
  std::vector<std::vector<std::byte>> whole_; // tensors that are transposed
  std::vector<std::byte> block_;
};

} // namespace

ModelImport::ModelImport(ImportRequest request) : request_(std::move(request)) {
  checkpoint::refuse_checkpoint_output(request_.output, "--output");
  refuse_run_output(request_.run);
  std::error_code unknown;
  if (!fs::is_directory(request_.folder, unknown))
    throw Error(fs::exists(request_.folder, unknown) ? "is not a folder" : "does not exist", request_.folder.string(),
                "name the folder of a model that transformers has saved");
  const ModelConfig config = read_model_config(request_.folder);
  choose_plugin(config);
  if (!config.model_type.empty() && config.model_type != architecture_->model_type)
    refusals_.add(make_refusal(ErrorCode::kConflict, {}, "{}: model_type is \"{}\", and that of {} is \"{}\"",
                               config.file, printable(config.model_type), architecture_->name,
                               architecture_->model_type)
                      .with_hint("the file is of another model, or was damaged"));
  options_ = options_of(config, *architecture_, plugin_.rows, request_.ignored, refusals_);
  tensors_ = std::make_unique<ModelTensors>(request_.folder);
  if (!refusals_.empty()) return; // what the model needs is not known
  const MappedModel model(plugin_, options_);
  for (const Refusal& refusal : model.refusals())
    refusals_.add({refusal.code, {}, text("{}: {}", config.file, refusal.message), refusal.hint});
  if (!refusals_.empty()) return;
  parameters_ = model.parameters(*architecture_);
  match_tensors();
}

void ModelImport::choose_plugin(const ModelConfig& config) {
  const std::vector<plugin::SearchFolder> folders = search_folders_after(request_.paths);
  std::vector<std::string> notes;
  std::vector<MappedPlugin> candidates;
  if (request_.model.empty()) {
    candidates = mapped_plugins(folders, notes);
  } else {
    candidates.push_back(mapped_plugin(request_.model, folders));
  }
  std::vector<std::string> known, fitting;
  for (MappedPlugin& candidate : candidates)
    for (const HfArchitecture& architecture : candidate.architectures) {
      known.push_back(text("{} ({})", architecture.name, candidate.name));
      if (is_of(architecture, config)) fitting.push_back(candidate.name);
    }
  const std::string wanted = config.architectures.empty() ? text("model_type \"{}\"", printable(config.model_type))
                                                          : printable(listed(config.architectures));
  if (fitting.empty()) {
    std::string hint = text("known: {}", known.empty() ? "none" : listed(known));
    for (const std::string& note : notes) hint += "\n  cannot be used: " + note;
    throw Error(text("no model plugin has the architecture {}", shortened(wanted)), config.file.string(), hint);
  }
  if (fitting.size() > 1)
    throw Error(text("several model plugins have the architecture {}: {}", shortened(wanted), listed(fitting)),
                config.file.string(), "choose one with --model");
  plugin_ = std::move(*std::ranges::find(candidates, fitting.front(), &MappedPlugin::name));
  architecture_ = &*std::ranges::find_if(plugin_.architectures, [&](const auto& each) { return is_of(each, config); });
}

const ModelTensors::Tensor* ModelImport::find_tensor(const std::string& name) const {
  const auto& all = tensors_->all();
  if (const auto found = all.find(name); found != all.end()) return &found->second;
  const std::string& prefix = architecture_->optional_prefix;
  if (prefix.empty() || !name.starts_with(prefix)) return nullptr;
  const auto found = all.find(name.substr(prefix.size()));
  return found == all.end() ? nullptr : &found->second;
}

void ModelImport::match_tensors() {
  GroupedRefusals refused;
  std::set<std::string> used;
  for (const StoredParameter& parameter : parameters_) {
    Source& source = sources_.emplace_back();
    for (std::size_t i = 0; i < parameter.row.tensors.size(); ++i) {
      const ModelTensors::Tensor* const tensor = find_tensor(parameter.row.tensors[i]);
      source.tensors.push_back(tensor);
      if (tensor) {
        used.insert(tensor->entry.name);
        check_tensor(parameter, i, *tensor, refused);
        continue;
      }
      refused.add({ErrorCode::kMissing,
                   {},
                   text("{}: has no tensor \"{}\", {} of {}", request_.folder, parameter.row.tensors[i],
                        to_text(parameter.tensor_shape(i)), architecture_->name),
                   "the folder is not complete, or its config.json is of another model"});
    }
  }
  refuse_other_tensors(used, refused);
  refusals_.add(refused.take());
}

void ModelImport::check_tensor(const StoredParameter& parameter, std::size_t index, const ModelTensors::Tensor& tensor,
                               GroupedRefusals& refused) const {
  const checkpoint::TensorEntry& entry = tensor.entry;
  const Shape wanted = parameter.tensor_shape(index);
  const auto refuse = [&](ErrorCode code, const std::string& why, const char* hint) {
    refused.add({code, {}, text("{}: tensor \"{}\" {}", tensors_->file_of(tensor), printable(entry.name), why), hint});
  };
  if (!(entry.shape == wanted))
    refuse(ErrorCode::kIncompatible,
           text("has shape {}, and config.json asks for {}", to_text(entry.shape), to_text(wanted)),
           "the file and config.json are of different models");
  if (!is_floating(entry.dtype))
    refuse(ErrorCode::kWrongType, text("has type {}, which is not a type of weights", name_of(entry.dtype)),
           "quantized models cannot be imported: use the model that was quantized");
  if (entry.dtype == DType::f64)
    refuse(ErrorCode::kUnsupported, "has type f64, and would be rounded to f32", "save the model in float32 first");
}

void ModelImport::refuse_other_tensors(const std::set<std::string>& used, GroupedRefusals& refused) const {
  const std::string& prefix = architecture_->optional_prefix;
  const auto is_ignored = [&](const std::string& name) {
    const auto fits = [&](const std::string& pattern) {
      return number_in(name, pattern).has_value() || (!prefix.empty() && number_in(prefix + name, pattern).has_value());
    };
    return std::ranges::any_of(architecture_->ignored_tensors, fits) ||
           std::ranges::any_of(architecture_->copies, fits, &HfCopy::tensor);
  };
  for (const auto& [name, tensor] : tensors_->all())
    if (!used.contains(name) && !is_ignored(name))
      refused.add(
          {ErrorCode::kUnsupported,
           {},
           text("{}: tensor \"{}\" is not of {} with this config.json", tensors_->file_of(tensor),
                shortened(printable(name)), architecture_->name),
           text("the model has parts that {} does not have, or config.json is of another model", plugin_.name)});
}

void ModelImport::check_copies(const StopRequest& stop) const {
  for (const HfCopy& copy : architecture_->copies) {
    const ModelTensors::Tensor *a = find_tensor(copy.tensor), *b = find_tensor(copy.of);
    const auto uses_a = [a](const Source& source) {
      return std::ranges::find(source.tensors, a) != source.tensors.end();
    };
    if (!a || !b || std::ranges::any_of(sources_, uses_a)) continue; // of a parameter of its own: not a copy
    bool is_equal = a->entry.dtype == b->entry.dtype && a->entry.shape == b->entry.shape;
    std::vector<std::byte> of_a, of_b;
    const std::uint64_t block = checkpoint::kBlockElements;
    for (std::uint64_t at = 0; is_equal && at < a->entry.bytes(); at += block) {
      checkpoint::check_stop(stop);
      of_a.resize(std::min(block, a->entry.bytes() - at));
      of_b.resize(of_a.size());
      tensors_->read(*a, at, of_a);
      tensors_->read(*b, at, of_b);
      is_equal = of_a == of_b;
    }
    if (!is_equal)
      throw Error(
          text("tensor \"{}\" differs from \"{}\", which {} uses for both", a->entry.name, b->entry.name, plugin_.name),
          tensors_->file_of(*a).string(), "the model is not tied: use a model plugin that has an untied head");
  }
}

checkpoint::Manifest ModelImport::manifest() const {
  checkpoint::Manifest out;
  out.created = checkpoint::creation_time();
  out.engine = TRIAX_VERSION;
  out.plugins = {{"model", text("{} {}", plugin_.name, plugin_.library->descriptor->version)}};
  out.layout = {{"data", 1}, {"pipeline", 1}, {"tensor", 1}};
  out.config = {{"model.plugin", plugin::to_toml(plugin_.name)},
                {"train.precision", plugin::to_toml(std::string("fp32"))}};
  for (const auto& [option, value] : options_)
    out.config["model." + option] = plugin::to_toml(plugin::parse_option(plugin_.rows.at(option), value));
  return out;
}

std::string ModelImport::toml() const {
  RunChoices choices{.comment = text("{} of {}, imported by Triax {}", architecture_->name,
                                     fs::absolute(request_.folder), TRIAX_VERSION),
                     .run = request_.run,
                     .checkpoint = request_.output,
                     .data = request_.data,
                     .paths = request_.paths,
                     .model = {{"plugin", plugin::to_toml(plugin_.name)}}};
  const auto add = [&](const std::string& option) {
    if (const auto set = options_.find(option); set != options_.end())
      choices.model.emplace_back(option, plugin::to_toml(plugin::parse_option(plugin_.rows.at(option), set->second)));
  };
  for (const triax_option& option : plugin_.library->options) add(option.name); // in the order of its table
  add("vocab");
  return run_toml(choices);
}

ImportedModel ModelImport::write(const StopRequest& stop) {
  TRIAX_REQUIRE(refusals_.empty(), "a model that was refused");
  check_copies(stop);
  ImportedModel out{architecture_->name, plugin_.name, 0, 0, 0, carried_files(request_.folder)};
  std::vector<checkpoint::TensorEntry> entries;
  for (const StoredParameter& parameter : parameters_) {
    entries.push_back({parameter.name, kMaster, parameter.shape, 0});
    out.tensors += parameter.row.tensors.size();
    out.parameters += parameter.shape.elements();
  }
  os::StagedFile run(request_.run,
                     "free space there, or name a file in a folder that exists and that this user may write to");
  const std::string content = toml();
  run.write(std::as_bytes(std::span(content)));
  checkpoint::StagedFolder folder(request_.output);
  checkpoint::Manifest made = manifest();
  made.content = checkpoint::write_weights(folder, entries, [&](std::size_t i, const ByteSink& sink) {
    ParameterSource(*tensors_, parameters_[i], sources_[i].tensors).pass(sink, stop);
  });
  out.bytes = made.content.files.front().bytes;
  folder.create_folder(kCarriedFolder);
  std::vector<std::string> carried = out.files;
  carried.emplace_back(kConfigFile);
  copy_files(request_.folder, carried, folder, std::string(kCarriedFolder) + "/", stop);
  checkpoint::write_manifest(folder, made);
  folder.complete();
  run.commit(false);
  return out;
}

} // namespace triax::hf
