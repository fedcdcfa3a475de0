// SPDX-License-Identifier: Apache-2.0
#include "hf/model_export.hpp"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/bytes_text.hpp"
#include "checkpoint/new_checkpoint.hpp"
#include "checkpoint/weights.hpp"
#include "hf/carried_files.hpp"
#include "hf/json_file.hpp"
#include "hf/model_origin.hpp"
#include "hf/model_tensors.hpp"
#include "hf/tensor_target.hpp"
#include "os/path_names.hpp"
#include "plugin/option_text.hpp"
#include "plugin/plugin_kinds.hpp"

namespace triax::hf {

namespace {

namespace fs = std::filesystem;

using checkpoint::SavedTensor, checkpoint::StopRequest, checkpoint::TensorReader;

std::string torch_name(DType type) {
  switch (type) {
    case DType::f64:
      return "float64";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

/// "model.safetensors", or "model-00001-of-00002.safetensors".
std::string shard_file(std::size_t shard, std::size_t shards) {
  if (shards == 1) return kSingleFile;
  const auto padded = [](std::size_t number) {
    const std::string plain = std::to_string(number);
    return std::string(plain.size() < 5 ? 5 - plain.size() : 0, '0') + plain;
  };
  return text("model-{}-of-{}.safetensors", padded(shard + 1), padded(shards));
}

ExportRequest without_slashes(ExportRequest request) {
  for (fs::path* folder : {&request.folder, &request.files}) *folder = os::without_slash(std::move(*folder));
  return request;
}

/// The folder to write, which must not be in the checkpoint.
void refuse_folder(const fs::path& folder, const fs::path& checkpoint) {
  if (!folder.empty() && os::is_inside(folder, checkpoint) && !os::is_there(folder))
    throw Error("is in a checkpoint", folder.string(), "name a folder beside it");
  checkpoint::refuse_new_folder(folder, "DIR");
}

/// Refuses a folder of --files without a tokenizer.
void refuse_without_tokenizer(const fs::path& folder) {
  constexpr const char* kNameTokenizer = "name a folder with tokenizer.json in --files";
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown))
    throw Error(fs::exists(folder, unknown) ? "is not a folder" : "does not exist", folder.string(), kNameTokenizer);
  if (!has_tokenizer(carried_files(folder)))
    throw Error(text("has no tokenizer: {}", kTokenizerFiles), folder.string(), kNameTokenizer);
}

/// The value of a key of the run that wrote the checkpoint, as --set takes it.
std::optional<std::string> config_value(const TensorReader& from, const std::string& key) {
  const auto found = from.manifest().config.find(key);
  return found == from.manifest().config.end() ? std::nullopt : std::optional(found->second);
}

/// The class that takes everything from tokenizer.json. Those of models add rules.
std::string tokenizer_config(const NewTokenizer& tokenizer) {
  Json out = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  if (tokenizer.end) out["eos_token"] = tokenizer.end_text;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// The architecture that config.json in the folder names, or null.
const HfArchitecture* architecture_in(const fs::path& folder, const MappedPlugin& plugin) {
  const ModelConfig config = read_model_config(folder);
  for (const std::string& name : config.architectures)
    if (const HfArchitecture* found = plugin.find(name)) return found;
  if (!config.architectures.empty()) return nullptr;
  const auto found = std::ranges::find(plugin.architectures, config.model_type, &HfArchitecture::model_type);
  return found == plugin.architectures.end() ? nullptr : &*found;
}

MappedPlugin plugin_of(const TensorReader& from, const std::vector<fs::path>& paths) {
  const std::optional<std::string> written = config_value(from, "model.plugin");
  if (!written)
    throw Error("does not name its model plugin", (from.folder() / checkpoint::kManifestFile).string(),
                "use a checkpoint that a run has saved");
  constexpr triax_option kRow = option_string("plugin", nullptr, nullptr, "model plugin");
  const auto name = std::get<std::string>(plugin::parse_option(kRow, *written));
  return mapped_plugin(name, search_folders_after(paths));
}

} // namespace

ModelExport::ModelExport(TensorReader& from, ExportRequest request)
    : from_(from), request_(without_slashes(std::move(request))) {
  refuse_folder(request_.folder, from_.folder());
  if (!request_.files.empty()) refuse_without_tokenizer(request_.files);
  files_from_ = request_.files.empty() ? from_.folder() / kCarriedFolder : request_.files;
  if (request_.tokenizer.json.empty()) files_ = carried_files(files_from_);
  plugin_ = plugin_of(from_, request_.paths);
  read_options();
  find_model_before();
  choose_architecture();
  if (!refusals_.empty()) return;
  match_weights();
  plan_shards();
  make_config();
}

/// Those of the run that wrote the checkpoint.
void ModelExport::read_options() {
  const std::string manifest = (from_.folder() / checkpoint::kManifestFile).string();
  for (const auto& [option, row] : plugin_.rows) {
    const std::optional<std::string> written = config_value(from_, "model." + option);
    if (written) options_[option] = *written;
    if (!written && row.default_value) options_[option] = row.default_value; // the option is newer than the checkpoint
    if (!options_.contains(option))
      throw Error(text("does not have the run's model.{}", option), manifest, "use a checkpoint that a run has saved");
    Refusals wrong;
    try {
      wrong = plugin::check_option(row, plugin::parse_option(row, options_[option]));
    } catch (const Error& error) {
      wrong.add(make_refusal(ErrorCode::kWrongType, {}, "{}", error.message()));
    }
    if (!wrong.empty())
      throw Error(text("model.{}", wrong.front().message), manifest,
                  text("use the version of {} that trained it", plugin_.name));
  }
}

/// The imported model that the weights began with, of this checkpoint or of another one. What is wrong with another
/// checkpoint does not stop an export.
void ModelExport::find_model_before() {
  const fs::path own = from_.folder() / kCarriedFolder;
  if (os::is_there(own / kConfigFile)) {
    config_before_ = own / kConfigFile;
    architecture_before_ = architecture_in(own, plugin_);
    return;
  }
  ModelOrigin origin = find_origin(from_);
  const fs::path config = origin.folder / kConfigFile;
  try {
    if (!origin.folder.empty()) architecture_before_ = architecture_in(origin.folder, plugin_);
    if (architecture_before_) config_before_ = config;
    if (!origin.folder.empty() && !architecture_before_)
      origin.problem = text("{}: {} does not have its architecture", config, plugin_.name);
  } catch (const Error& error) {
    origin.problem = text("{}: {}", error.where(), error.message());
  }
  if (!origin.problem.empty())
    notes_.push_back(
        text("{} in config.json, because the imported model is not found: {}; set {} there",
             request_.tokenizer.json.empty() ? "bos_token_id and eos_token_id are null" : "bos_token_id is null",
             origin.problem, request_.tokenizer.json.empty() ? "them" : "it"));
}

void ModelExport::choose_architecture() {
  const std::string where = from_.folder().string();
  if (!request_.architecture.empty() && !plugin_.find(request_.architecture)) {
    std::string known;
    for (const HfArchitecture& each : plugin_.architectures) known += (known.empty() ? "" : ", ") + each.name;
    throw Error(text("--architecture must be an architecture of {}, got {}", plugin_.name, request_.architecture), {},
                text("use {}", known));
  }
  const MappedModel model(plugin_, options_);
  const OptionTexts resolved = model.resolved_options();
  std::vector<const HfArchitecture*> candidates;
  for (const HfArchitecture& each : plugin_.architectures)
    if (request_.architecture.empty() || each.name == request_.architecture) candidates.push_back(&each);
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](const HfArchitecture* each) { return each == architecture_before_; });
  std::optional<Error> unstorable; // why the first architecture whose keys fit cannot store the model
  for (const HfArchitecture* each : candidates) {
    Refusals refused;
    std::vector<std::pair<std::string, std::string>> values =
        config_of(options_, resolved, *each, plugin_.rows, where, refused);
    if (!refused.empty()) {
      refusals_.add(refused);
      continue;
    }
    try {
      model.rows(*each);
    } catch (const Error& error) {
      if (!unstorable) unstorable = error;
      continue;
    }
    if (unstorable) notes_.push_back(text("Exported as {}: {}", each->name, unstorable->message()));
    architecture_ = each;
    values_ = std::move(values);
    refusals_ = {};
    return;
  }
  if (unstorable) throw Error(*unstorable);
}

void ModelExport::match_weights() {
  const MappedModel model(plugin_, options_);
  parameters_ = model.parameters(*architecture_);
  const std::string manifest = (from_.folder() / checkpoint::kManifestFile).string();
  std::map<std::string, const SavedTensor*> left;
  for (const SavedTensor* tensor : checkpoint::weights_of(from_.manifest())) left[tensor->parameter] = tensor;
  for (const StoredParameter& parameter : parameters_) {
    const auto found = left.find(parameter.name);
    if (found == left.end() || !(found->second->shape == parameter.shape))
      throw Error(
          text("parameter \"{}\" is {}, but {} of this version has {}", parameter.name,
               found == left.end() ? "missing" : to_text(found->second->shape), plugin_.name, to_text(parameter.shape)),
          manifest, "use the version of the model plugin that trained it");
    weights_.push_back(found->second);
    left.erase(found);
  }
  if (!left.empty())
    throw Error(text("parameter \"{}\" is not in {} of this version", left.begin()->first, plugin_.name), manifest,
                "use the version of the model plugin that trained it");
}

const std::string& ModelExport::name_of(const Target& target) const {
  return parameters_[target.parameter].row.tensors[target.tensor];
}

DType ModelExport::dtype_of(const Target& target) const {
  return request_.dtype.value_or(weights_[target.parameter]->dtype);
}

/// Fills one shard after another.
void ModelExport::plan_shards() {
  std::uint64_t bytes = 0;
  std::size_t shard = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (std::size_t tensor = 0; tensor < parameters_[i].row.tensors.size(); ++tensor) {
      Target target{i, tensor, shard};
      const std::uint64_t size =
          static_cast<std::uint64_t>(parameters_[i].tensor_shape(tensor).elements()) * bytes_of(dtype_of(target));
      if (bytes > 0 && bytes + size > request_.shard_bytes) {
        target.shard = ++shard;
        bytes = 0;
      }
      bytes += size;
      targets_.push_back(target);
    }
  shards_ = shard + 1;
  if (shards_ > kMaxModelFiles)
    throw Error(text("--max-shard-size {} makes {} files, but at most {} are read", bytes_text(request_.shard_bytes),
                     shards_, kMaxModelFiles),
                {}, "use a larger --max-shard-size");
}

/// Keys that do not change what the model computes, such as ids of tokens, are those of the imported model.
void ModelExport::make_config() {
  std::vector<std::pair<std::string, std::string>> ids; // of the new tokenizer
  if (!request_.tokenizer.json.empty()) {
    const std::optional<std::int32_t>& end = request_.tokenizer.end;
    ids = {{"bos_token_id", "null"}, {"eos_token_id", end ? text("{}", *end) : "null"}};
  }
  config_ = config_text(*architecture_, values_, torch_name(dtype_of(targets_.front())), config_before_, ids);
}

/// Writes the file of a shard, and adds its tensors to `out`.
void ModelExport::write_shard(std::size_t shard, const checkpoint::StagedFolder& folder, ExportedModel& out,
                              const StopRequest& stop) {
  std::vector<checkpoint::TensorEntry> entries;
  std::vector<const Target*> targets;
  for (const Target& target : targets_) {
    if (target.shard != shard) continue;
    targets.push_back(&target);
    entries.push_back(
        {name_of(target), dtype_of(target), parameters_[target.parameter].tensor_shape(target.tensor), 0});
    out.parameters += entries.back().shape.elements();
    out.bytes += entries.back().bytes();
  }
  const std::pair<std::string, std::string> metadata{"format", "pt"};
  const std::string header = checkpoint::make_header(entries, {&metadata, 1});
  os::DurableFile file = folder.file(shard_file(shard, shards_));
  file.write(std::as_bytes(std::span(header)));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t parameter = targets[i]->parameter;
    TensorTarget(from_, *weights_[parameter], parameters_[parameter], targets[i]->tensor, entries[i].dtype)
        .pass([&](std::span<const std::byte> bytes) { file.write(bytes); }, stop);
  }
  file.finish();
}

std::string ModelExport::index(std::uint64_t bytes) const {
  std::map<std::string, std::string> files;
  for (const Target& target : targets_) files[name_of(target)] = shard_file(target.shard, shards_);
  const Json json = {{"metadata", {{"total_size", bytes}}}, {"weight_map", files}};
  return json.dump(2) + "\n";
}

ExportedModel ModelExport::write(const StopRequest& stop) {
  TRIAX_REQUIRE(refusals_.empty(), "a model that was refused");
  checkpoint::check_weights(from_, stop);
  ExportedModel out{request_.folder, architecture_->name, targets_.size(), shards_, 0, 0, files_, notes_};
  checkpoint::StagedFolder folder(request_.folder);
  const auto write_text = [&](const char* name, const std::string& content) {
    os::DurableFile file = folder.file(name);
    file.write(std::as_bytes(std::span(content)));
    file.finish();
  };
  write_text(kConfigFile, config_);
  for (std::size_t shard = 0; shard < shards_; ++shard) write_shard(shard, folder, out, stop);
  if (shards_ > 1) write_text(kIndexFile, index(out.bytes));
  copy_files(files_from_, files_, folder, "", stop);
  if (const NewTokenizer& tokenizer = request_.tokenizer; !tokenizer.json.empty()) {
    write_text(kTokenizerFile, tokenizer.json);
    write_text("tokenizer_config.json", tokenizer_config(tokenizer));
    out.files.insert(out.files.end(), {kTokenizerFile, "tokenizer_config.json"});
  }
  checkpoint::check_stop(stop);
  folder.complete();
  return out;
}

} // namespace triax::hf
