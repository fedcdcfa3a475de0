// SPDX-License-Identifier: Apache-2.0
#include "hf/model_import.hpp"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/weights.hpp"
#include "hf/architecture_choice.hpp"
#include "hf/carried_files.hpp"
#include "hf/config_sizes.hpp"
#include "hf/hints.hpp"
#include "hf/parameter_source.hpp"
#include "hf/run_toml.hpp"
#include "os/folder_access.hpp"
#include "os/path_names.hpp"
#include "plugin/option_text.hpp"
#include "triax/layout.hpp"
#include "triax/version.h"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

using checkpoint::ByteSink, checkpoint::StopRequest;

constexpr const char* kNameWritableFile = "name a file in a folder that exists and that this user may write to";
constexpr const char* kAdapterFile = "adapter_config.json"; // of peft, such as LoRA
constexpr const char* kDiverged =
    "the file was damaged, or the model diverged in training: download the folder again, or use another model";

ImportRequest without_slashes(ImportRequest request) {
  for (fs::path* folder : {&request.folder, &request.output}) *folder = os::without_slash(std::move(*folder));
  return request;
}

/// `run` is a new TOML file, and not a part of the checkpoint.
void refuse_run_output(const fs::path& run, const fs::path& checkpoint) {
  std::error_code unknown;
  if (run.extension() != ".toml")
    throw Error(text("--run must name a file that ends with .toml, got \"{}\"", run), {}, "name the TOML to write");
  if (os::is_inside(run, checkpoint))
    throw Error("is in the folder of --output", run.string(), "name a file beside the checkpoint with --run");
  if (const std::string why = os::why_not_creatable(run); !why.empty())
    throw Error("cannot be created: " + why, run.string(), kNameWritableFile);
  if (const std::string why = os::why_name_too_long(run); !why.empty())
    throw Error("cannot be created: " + why, run.string(), "choose a shorter name");
  const fs::file_type type = fs::symlink_status(run, unknown).type();
  if (type == fs::file_type::none)
    throw Error("cannot be created: " + unknown.message(), run.string(), kNameWritableFile);
  if (type != fs::file_type::not_found) throw Error("already exists", run.string(), "remove it, or name another file");
  if (run.has_parent_path() && !fs::exists(run.parent_path(), unknown))
    throw Error("cannot be created: No such file or directory", run.string(), kNameWritableFile);
}

void refuse_source(const fs::path& folder) {
  std::error_code unknown;
  if (folder.empty()) throw Error("DIR is empty", {}, kNameModelFolder);
  if (!fs::exists(folder, unknown)) throw Error("does not exist", folder.string(), kNameModelFolder);
  if (!fs::is_directory(folder, unknown)) throw Error("is not a folder", folder.string(), kNameModelFolder);
  if (os::is_there(folder / kAdapterFile))
    throw Error(text("has an adapter ({}), which changes the weights of a model", kAdapterFile), folder.string(),
                "merge it into its model with merge_and_unload() of peft, save that model, and name its folder");
}

/// Collects the tensors with values that are NaN or infinite. They are accepted: transformers loads them, and a row of
/// a table that no text uses does no harm.
class NonfiniteTensors {
 public:
  explicit NonfiniteTensors(const ModelTensors& tensors) : tensors_(tensors) {}

  void add(const ModelTensors::Tensor& tensor, std::int64_t values) {
    if (values == 0) return;
    if (!first_) first_ = {&tensor, values};
    ++count_;
  }

  std::optional<Error> warning() const {
    if (!first_) return std::nullopt;
    const auto& [tensor, values] = *first_;
    return Error(text("tensor \"{}\" has {} NaN or infinite{}", shortened(printable(tensor->entry.name)),
                      values == 1 ? "1 value that is" : text("{} values that are", values),
                      count_ == 1 ? "" : text(" (and {} more)", count_ - 1)),
                 tensors_.file_of(*tensor).string(), kDiverged);
  }

 private:
  const ModelTensors& tensors_;
  std::optional<std::pair<const ModelTensors::Tensor*, std::int64_t>> first_;
  std::size_t count_ = 0;
};

} // namespace

ModelImport::ModelImport(ImportRequest request) : request_(without_slashes(std::move(request))) {
  checkpoint::refuse_checkpoint_output(request_.output, "--output");
  refuse_run_output(request_.run, request_.output);
  refuse_source(request_.folder);
  if (os::is_inside(request_.output, request_.folder))
    throw Error("is in the model's folder", request_.output.string(), "name a folder beside it with --output");
  read_config();
  read_tensors();
  if (!refusals_.empty()) return; // what the model needs is not known
  match_model();
}

void ModelImport::read_config() {
  config_ = read_model_config(request_.folder);
  ArchitectureChoice choice = choose_architecture(config_, request_.model, request_.paths);
  plugin_ = std::move(choice.plugin);
  architecture_ = &plugin_.architectures[choice.index];
  if (!config_.model_type.empty() && config_.model_type != architecture_->model_type)
    refusals_.add(make_refusal(ErrorCode::kConflict, {}, "{}: model_type is \"{}\", but that of {} is \"{}\"",
                               config_.file, shortened(printable(config_.model_type)), architecture_->name,
                               architecture_->model_type)
                      .with_hint("{}", kOtherModel));
  options_ = options_of(config_, *architecture_, {plugin_.name, plugin_.rows, request_.ignored}, refusals_);
}

/// Errors of files are reported together with those of config.json.
void ModelImport::read_tensors() {
  try {
    tensors_ = std::make_unique<ModelTensors>(request_.folder);
    files_ = carried_files(request_.folder);
  } catch (const Error& error) {
    refusals_.add({ErrorCode::kNotReadable, {}, text("{}: {}", error.where(), error.message()), error.hint()});
  }
}

void ModelImport::match_model() {
  const MappedModel model(plugin_, options_);
  const std::string absent = absent_sizes(config_, *architecture_, plugin_.rows);
  // The weights fix the options, and the layout is one rank: what the plugin suggests to change cannot change.
  for (const Refusal& refusal : model.refusals())
    refusals_.add({refusal.code, {}, text("{}: {}", config_.file, refusal.message), kOtherModel + absent});
  refuse_list_lengths(config_, *architecture_, model.blocks(), refusals_);
  if (!refusals_.empty()) return;
  try {
    model.rows(*architecture_);
  } catch (const Error& error) {
    if (match_another(model)) return;
    throw Error(error.message(), text("{}, {}", config_.file, error.where()), kOtherModel + absent);
  }
  parameters_ = model.parameters(*architecture_);
  match_ = match_tensors(*tensors_, {plugin_.name, *architecture_, parameters_});
  for (Refusal refusal : match_.refusals) {
    if (refusal.code == ErrorCode::kIncompatible) refusal.hint += absent; // a shape
    refusals_.add(std::move(refusal));
  }
}

/// A plugin may refuse to store the model as its architecture, where only an earlier version of transformers did so.
/// Its tensors are then those of another architecture that the same options fit.
bool ModelImport::match_another(const MappedModel& model) {
  const auto is_same = [&](const std::pair<std::string, std::string>& option) {
    const triax_option& row = plugin_.rows.at(option.first);
    const auto set = options_.find(option.first);
    return set != options_.end() && plugin::parse_option(row, set->second) == plugin::parse_option(row, option.second);
  };
  for (const HfArchitecture& other : plugin_.architectures) {
    if (&other == architecture_ || !std::ranges::all_of(other.options, is_same)) continue;
    try {
      parameters_ = model.parameters(other);
    } catch (const Error&) { // cannot store it either
      continue;
    }
    match_ = match_tensors(*tensors_, {plugin_.name, *architecture_, parameters_});
    if (match_.refusals.empty()) return true;
  }
  return false;
}

checkpoint::Manifest ModelImport::manifest() const {
  checkpoint::Manifest out;
  out.created = checkpoint::creation_time();
  out.engine = TRIAX_VERSION;
  out.plugins = {{"model", text("{} {}", plugin_.name, plugin_.library->descriptor->version)}};
  const Layout one_rank = Layout::ptd(1, 1, 1);
  for (const Axis& axis : one_rank.axes()) out.layout[axis.name] = axis.size;
  out.config = {{"model.plugin", plugin::to_toml(plugin_.name)},
                {"train.precision", plugin::to_toml(std::string("fp32"))}};
  for (const auto& [option, value] : options_)
    out.config["model." + option] = plugin::to_toml(plugin::parse_option(plugin_.rows.at(option), value));
  return out;
}

std::string ModelImport::toml() const {
  std::vector<fs::path> paths = request_.paths;
  if (plugin::is_path(request_.model)) paths.push_back(plugin_.library->file.parent_path());
  RunChoices choices{.comment = text("{} of {}, imported by Triax {}", architecture_->name,
                                     plugin::to_toml(fs::absolute(request_.folder)), TRIAX_VERSION),
                     .run = request_.run,
                     .checkpoint = request_.output,
                     .data = request_.data,
                     .paths = std::move(paths),
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
  check_copies(*tensors_, match_, plugin_.name, stop);
  ImportedModel out{request_.output, architecture_->name, plugin_.name, 0, 0, 0, files_, {}};
  NonfiniteTensors nonfinite(*tensors_);
  std::vector<checkpoint::TensorEntry> entries;
  for (const StoredParameter& parameter : parameters_) {
    entries.push_back({parameter.name, kMaster, parameter.shape, 0});
    out.tensors += parameter.row.tensors.size();
    out.parameters += parameter.shape.elements();
  }
  os::StagedFile run(request_.run, text("free space there, or {}", kNameWritableFile));
  const std::string content = toml();
  run.write(std::as_bytes(std::span(content)));
  checkpoint::StagedFolder folder(request_.output);
  checkpoint::Manifest made = manifest();
  made.content = checkpoint::write_weights(folder, entries, [&](std::size_t i, const ByteSink& sink) {
    ParameterSource source(*tensors_, parameters_[i], match_.sources[i]);
    source.pass(sink, stop);
    for (std::size_t tensor = 0; tensor < match_.sources[i].size(); ++tensor)
      nonfinite.add(*match_.sources[i][tensor], source.nonfinite()[tensor]);
  });
  out.nonfinite = nonfinite.warning();
  out.bytes = made.content.files.front().bytes;
  folder.create_folder(kCarriedFolder);
  std::vector<std::string> carried = files_;
  carried.emplace_back(kConfigFile);
  copy_files(request_.folder, carried, folder, std::string(kCarriedFolder) + "/", stop);
  checkpoint::write_manifest(folder, made);
  checkpoint::check_stop(stop);
  folder.complete();
  try {
    run.commit(false);
  } catch (const Error&) {
    if (!run.is_committed()) folder.remove();
    throw;
  }
  return out;
}

} // namespace triax::hf
