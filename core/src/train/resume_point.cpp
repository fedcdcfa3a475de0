// SPDX-License-Identifier: Apache-2.0
#include "train/resume_point.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "checkpoint/folder.hpp"
#include "executor/kept_state.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

using checkpoint::Manifest, checkpoint::SavedTensor;

/// Why a tensor cannot be read, or empty.
std::string difference(const SavedTensor* saved, const ParamSpec& spec, DType master) {
  if (!saved) return "is not in the checkpoint";
  if (!(saved->shape == spec.global))
    return text("has shape {} in the checkpoint and {} in this run", to_text(saved->shape), to_text(spec.global));
  if (saved->dtype != master)
    return text("has type {} in the checkpoint and {} in this run", name_of(saved->dtype), name_of(master));
  return {};
}

/// Keys whose change cannot matter to what is trained.
bool is_of_files(const std::string& key) {
  constexpr std::array kTables = {"run.", "log.", "launch.", "checkpoint.", "plugins."};
  constexpr std::array kKeys = {"train.stop_at", "train.time_limit", "train.stall_timeout_s"};
  return std::ranges::any_of(kTables, [&](const char* table) { return key.starts_with(table); }) ||
         std::ranges::find(kKeys, key) != kKeys.end();
}

std::string value_of(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not set" : found->second;
}

std::vector<std::string> changed(const config::RunConfig& run, const Manifest& manifest) {
  std::vector<std::string> out;
  for (const auto& [key, value] : run.values)
    if (!is_of_files(key) && value_of(manifest.config, key) != value) out.push_back(key);
  for (const auto& [key, value] : manifest.config)
    if (!is_of_files(key) && !run.values.contains(key)) out.push_back(key);
  return out;
}

std::string change(const config::RunConfig& run, const Manifest& manifest, const std::string& key) {
  return text("{} = {} (was {})", key, value_of(run.values, key), value_of(manifest.config, key));
}

/// "; changed: parallel.tensor = 2 (was 1)", or empty.
std::string to_text(const config::RunConfig& run, const Manifest& manifest, const std::vector<std::string>& keys) {
  std::string out;
  for (const std::string& key : keys) out += (out.empty() ? "; changed: " : ", ") + change(run, manifest, key);
  return out;
}

/// The changed keys of these tables, which explain a difference of tensors.
std::vector<std::string> responsible(const config::RunConfig& run, const Manifest& manifest,
                                     std::initializer_list<const char*> prefixes) {
  std::vector<std::string> out;
  for (const std::string& key : changed(run, manifest))
    if (std::ranges::any_of(prefixes, [&](const char* prefix) { return key.starts_with(prefix); })) out.push_back(key);
  return out;
}

class Comparison {
 public:
  Comparison(const config::RunConfig& run, const ResumePoint& point, const Manifest& manifest)
      : run_(run), point_(point), manifest_(manifest) {
    for (const SavedTensor& tensor : manifest.content.tensors) saved_[{tensor.parameter, tensor.state}] = &tensor;
  }

  /// The first tensor that cannot be read, of one state.
  void compare(std::span<const executor::GlobalParameter> parameters, const std::string& state) {
    for (const executor::GlobalParameter& parameter : parameters) {
      const auto found = saved_.find({parameter.name, state});
      const SavedTensor* saved = found == saved_.end() ? nullptr : found->second;
      const std::string why = difference(saved, *parameter.spec, run_.train.master);
      if (!why.empty()) return refuse(parameter.name, state, why);
    }
  }
  /// Parameters that the model does not have.
  void find_others(std::span<const executor::GlobalParameter> parameters) {
    for (const SavedTensor& tensor : manifest_.content.tensors)
      if (tensor.state == executor::kMasterName &&
          std::ranges::find(parameters, tensor.parameter, &executor::GlobalParameter::name) == parameters.end())
        return refuse(tensor.parameter, tensor.state, "is not in the model of this run");
  }
  Refusals take() { return std::move(out_); }

 private:
  void refuse(const std::string& parameter, const std::string& state, const std::string& why) {
    if (!out_.empty()) return; // others have the same cause
    const bool of_model = state == executor::kMasterName;
    std::vector<std::string> keys = of_model ? responsible(run_, manifest_, {"model.", "train.precision"})
                                             : responsible(run_, manifest_, {"optimizer.plugin", "train.precision"});
    std::string changes;
    for (const std::string& key : keys)
      changes += (changes.empty() ? ". Changed: " : ", ") + change(run_, manifest_, key);
    if (keys.empty()) keys = {of_model ? "model.plugin" : "optimizer.plugin"};
    const std::string what = of_model ? text("parameter \"{}\"", parameter)
                                      : text("optimizer state \"{}\" of parameter \"{}\"", state, parameter);
    out_.add(make_refusal(ErrorCode::kIncompatible, keys, "cannot {} {}: {} {}{}",
                          run_.evaluates ? "use the weights of" : "continue from", point_.folder, what, why, changes)
                 .with_hint("{}", hint(of_model)));
  }
  std::string hint(bool of_model) const {
    const std::string anew =
        point_.is_of_run ? "begin anew with --fresh, which moves the checkpoints aside, or choose another run.dir"
                         : "name another checkpoint with checkpoint.from";
    if (run_.generate) return "use the values that the checkpoint was written with";
    if (run_.evaluates) return "use the values that the checkpoint was written with, or name another with --checkpoint";
    if (of_model) return "use the values that the checkpoint was written with; or " + anew;
    return text(
        "to begin with its weights and a new optimizer, in a run.dir without checkpoints: --set "
        "checkpoint.from={} --set checkpoint.load=weights; or {}",
        point_.folder.string(), anew);
  }

  const config::RunConfig& run_;
  const ResumePoint& point_;
  const Manifest& manifest_;
  std::map<std::pair<std::string, std::string>, const SavedTensor*> saved_;
  Refusals out_;
};

/// checkpoint.from names one checkpoint. The folder of a run is refused: its newest checkpoint changes while it trains.
void refuse_run(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder / checkpoint::kManifestFile, none)) return;
  for (const fs::path& inside : {folder / config::kCheckpointFolder, folder})
    if (fs::is_directory(inside, none))
      if (const auto found = checkpoint::checkpoints_in(inside); !found.empty())
        throw Error("is the folder of a run, not of a checkpoint", folder.string(),
                    text("name a checkpoint of it; the newest is {}", found.back().folder));
}

} // namespace

std::optional<ResumePoint> resume_point(const config::RunConfig& run) {
  const std::vector<checkpoint::FoundCheckpoint> own = checkpoint::checkpoints_in(run.checkpoints());
  if (!own.empty() && run.checkpoint.resume == "auto")
    return ResumePoint{own.back().folder, own.back().step, run.evaluates, true};
  if (run.checkpoint.from.empty()) return std::nullopt;
  refuse_run(run.checkpoint.from);
  const bool weights_only = run.checkpoint.load == "weights";
  const Manifest manifest = checkpoint::read_manifest(run.checkpoint.from / checkpoint::kManifestFile);
  return ResumePoint{run.checkpoint.from, weights_only ? 0 : manifest.training.step, weights_only};
}

Refusals check_resume(const config::RunConfig& run, const ResumePoint& point, const Manifest& manifest,
                      std::span<const executor::GlobalParameter> parameters, const OptimizerTraits& optimizer) {
  // Also with an optimizer without state, which could continue: at a step that these weights never had.
  if (!manifest.mean_of.empty() && !point.weights_only)
    return make_refusal(ErrorCode::kIncompatible, {"checkpoint.load", "checkpoint.from"},
                        "{} is a mean of checkpoints: a run can load its weights, but cannot continue from it",
                        point.folder)
        .with_hint("add --set checkpoint.load=weights");
  Comparison comparison(run, point, manifest);
  comparison.compare(parameters, executor::kMasterName);
  comparison.find_others(parameters);
  if (!point.weights_only)
    for (const std::string& state : optimizer.state) comparison.compare(parameters, state);
  return comparison.take();
}

std::string changed_keys(const config::RunConfig& run, const Manifest& manifest) {
  std::string out;
  for (const std::string& key : changed(run, manifest)) out += (out.empty() ? "" : ", ") + change(run, manifest, key);
  return out;
}

std::string to_text(const config::RunConfig& run, const ResumePoint& point, const Manifest& manifest) {
  if (run.evaluates) { // with other values of other keys, the weights are the same
    const std::string changes = to_text(run, manifest, responsible(run, manifest, {"model.", "train.precision"}));
    return text("{} the weights of {} (step {}){}", run.generate ? "generates with" : "evaluates", point.folder,
                manifest.training.step, changes);
  }
  if (point.weights_only) return text("begins with the weights of {} (step {})", point.folder, manifest.training.step);
  return text("continues after step {} from {}{}", manifest.training.step, point.folder,
              to_text(run, manifest, changed(run, manifest)));
}

} // namespace triax::train
