// SPDX-License-Identifier: Apache-2.0
#include "train/resume_point.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "checkpoint/folder.hpp"
#include "executor/kept_state.hpp"
#include "plugin/loader.hpp"
#include "plugin/option_text.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

using checkpoint::Manifest, checkpoint::SavedTensor;

constexpr std::string_view kModelTable = "model.";

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

/// Whether a key of [model] has the value that its default gives. A checkpoint may lack the key, if it is of an earlier
/// version of the plugin, or of an import whose config.json does not set it: the default means "as before".
bool has_default(const config::RunConfig& run, const std::string& key) {
  if (!key.starts_with(kModelTable)) return false;
  const plugin::Library* const library = run.model.library;
  const triax_option* const option = library ? plugin::find_option(*library, key.substr(kModelTable.size())) : nullptr;
  return option && option->default_value &&
         plugin::to_toml(plugin::parse_option(*option, option->default_value)) == value_of(run.values, key);
}

std::vector<std::string> changed(const config::RunConfig& run, const Manifest& manifest) {
  std::vector<std::string> out;
  for (const auto& [key, value] : run.values) {
    const bool is_new = !manifest.config.contains(key) && has_default(run, key);
    if (!is_of_files(key) && !is_new && value_of(manifest.config, key) != value) out.push_back(key);
  }
  for (const auto& [key, value] : manifest.config)
    if (!is_of_files(key) && !run.values.contains(key)) out.push_back(key);
  return out;
}

std::string change(const config::RunConfig& run, const Manifest& manifest, const std::string& key) {
  return text("{} = {} (was {})", key, value_of(run.values, key), value_of(manifest.config, key));
}

std::vector<std::string> changes(const config::RunConfig& run, const Manifest& manifest,
                                 const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) out.push_back(change(run, manifest, key));
  return out;
}

/// "; changed: parallel.tensor = 2 (was 1)", or empty.
std::string to_text(const std::vector<std::string>& changes) {
  std::string out;
  for (const std::string& change : changes) out += (out.empty() ? "; changed: " : ", ") + change;
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

/// The changed keys of [model] with which equal weights are another model.
std::vector<std::string> changed_model(const config::RunConfig& run, const Manifest& manifest,
                                       const std::vector<std::string>& training_options) {
  std::vector<std::string> out;
  for (const std::string& key : responsible(run, manifest, {kModelTable.data()})) {
    const bool in_training_only =
        std::ranges::find(training_options, key.substr(kModelTable.size())) != training_options.end();
    if (!in_training_only) out.push_back(key);
  }
  return out;
}

std::string to_text(const checkpoint::CorpusContent& corpus) {
  return text("{} tokens, checksum {}", corpus.tokens, corpus.checksum);
}

/// Earlier versions did not record the tokenizer, which check_tokenizer() compares.
bool has_same_tokens(const checkpoint::CorpusContent& a, const checkpoint::CorpusContent& b) {
  return a.tokens == b.tokens && a.checksum == b.checksum;
}

/// "content of data.paths[1] is 900 tokens, checksum 99aa... (was ...)", for each that differs. Nothing is known about
/// a corpus that only one of the two has.
std::vector<std::string> changed_content(const data::Corpora& corpora,
                                         const std::vector<checkpoint::CorpusContent>& before,
                                         const std::vector<checkpoint::CorpusContent>& now) {
  std::vector<std::string> out;
  for (std::size_t number = 0; number < std::min(before.size(), now.size()); ++number)
    if (!has_same_tokens(before[number], now[number]))
      out.push_back(text("content of {}{} is {} (was {})", corpora.key, now.size() > 1 ? text("[{}]", number) : "",
                         to_text(now[number]), to_text(before[number])));
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
  /// Keys with which the same tensors are another model.
  void compare_model(const std::vector<std::string>& training_options) {
    const std::vector<std::string> keys = changed_model(run_, manifest_, training_options);
    if (keys.empty() || !out_.empty()) return; // or a tensor shows it
    out_.add(make_refusal(ErrorCode::kIncompatible, keys,
                          "cannot continue from {}: its weights or its samples have another meaning in this model. "
                          "Changed: {}",
                          point_.folder, joined(changes(run_, manifest_, keys)))
                 .with_hint("use the values that the checkpoint was written with; {}; or {}", weights_hint(), anew()));
  }
  /// Other content under the same names. If the names have changed too, the user knows.
  void compare_data(const checkpoint::DataContent& data) {
    const std::vector<std::string> contents =
        changed_content(run_.data.training, manifest_.data.training, data.training);
    if (contents.empty() || run_.checkpoint.changed_data == "accept") return;
    if (!responsible(run_, manifest_, {"data.path", "data.weights"}).empty()) return;
    out_.add(make_refusal(ErrorCode::kIncompatible, {run_.data.training.key},
                          "cannot continue from {}: the token files have changed: {}", point_.folder, joined(contents))
                 .with_hint("use the files that the checkpoint was written with; to continue with the next sample of "
                            "the new content: --set checkpoint.changed_data=accept; or {}",
                            anew()));
  }
  Refusals take() { return std::move(out_); }

 private:
  static std::string joined(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
    return out;
  }
  void refuse(const std::string& parameter, const std::string& state, const std::string& why) {
    if (!out_.empty()) return; // others have the same cause
    const bool of_model = state == executor::kMasterName;
    std::vector<std::string> keys = of_model ? responsible(run_, manifest_, {"model.", "train.precision"})
                                             : responsible(run_, manifest_, {"optimizer.plugin", "train.precision"});
    const std::string changed = keys.empty() ? "" : ". Changed: " + joined(changes(run_, manifest_, keys));
    if (keys.empty()) keys = {of_model ? "model.plugin" : "optimizer.plugin"};
    const std::string what = of_model ? text("parameter \"{}\"", parameter)
                                      : text("optimizer state \"{}\" of parameter \"{}\"", state, parameter);
    out_.add(make_refusal(ErrorCode::kIncompatible, keys, "cannot {} {}: {} {}{}",
                          run_.evaluates ? "use the weights of" : "continue from", point_.folder, what, why, changed)
                 .with_hint("{}", hint(of_model)));
  }
  std::string anew() const {
    return point_.is_of_run ? "begin anew with --fresh, which moves the checkpoints aside, or choose another run.dir"
                            : "name another checkpoint with checkpoint.from";
  }
  std::string weights_hint() const {
    return text(
        "to begin with its weights and a new optimizer, in a run.dir without checkpoints: --set "
        "checkpoint.from={} --set checkpoint.load=weights",
        point_.folder.string());
  }
  std::string hint(bool of_model) const {
    if (run_.generate) return "use the values that the checkpoint was written with";
    if (run_.evaluates) return "use the values that the checkpoint was written with, or name another with --checkpoint";
    if (of_model) return "use the values that the checkpoint was written with; or " + anew();
    return text("{}; or {}", weights_hint(), anew());
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
                      const ResumingRun& resuming) {
  // Also with an optimizer without state, which could continue: at a step that these weights never had.
  if (!manifest.mean_of.empty() && !point.weights_only)
    return make_refusal(ErrorCode::kIncompatible, {"checkpoint.load", "checkpoint.from"},
                        "checkpoint.from: {} is an average of checkpoints: a run can load its weights, but cannot "
                        "continue from it",
                        point.folder)
        .with_hint("add --set checkpoint.load=weights");
  Comparison comparison(run, point, manifest);
  comparison.compare(resuming.parameters, executor::kMasterName);
  comparison.find_others(resuming.parameters);
  if (point.weights_only) return comparison.take();
  for (const std::string& state : resuming.optimizer.state) comparison.compare(resuming.parameters, state);
  comparison.compare_model(resuming.training_options);
  comparison.compare_data(resuming.data);
  return comparison.take();
}

std::string changed_keys(const config::RunConfig& run, const Manifest& manifest) {
  std::string out;
  for (const std::string& key : changed(run, manifest)) out += (out.empty() ? "" : ", ") + change(run, manifest, key);
  return out;
}

std::string to_text(const config::RunConfig& run, const ResumePoint& point, const Manifest& manifest,
                    const checkpoint::DataContent& data) {
  if (run.evaluates) { // with other values of other keys, the weights are the same
    const std::vector<std::string> keys = responsible(run, manifest, {kModelTable.data(), "train.precision"});
    return text("{} the weights of {} (step {}){}", run.generate ? "uses" : "evaluates", point.folder,
                manifest.training.step, to_text(changes(run, manifest, keys)));
  }
  if (point.weights_only) {
    const std::vector<std::string> keys = responsible(run, manifest, {kModelTable.data()});
    return text("begins with the weights of {} (step {}){}", point.folder, manifest.training.step,
                to_text(changes(run, manifest, keys)));
  }
  std::vector<std::string> all = changes(run, manifest, changed(run, manifest));
  std::ranges::move(changed_content(run.data.training, manifest.data.training, data.training), std::back_inserter(all));
  std::ranges::move(changed_content(run.data.validation, manifest.data.validation, data.validation),
                    std::back_inserter(all));
  return text("continues after step {} from {}{}", manifest.training.step, point.folder, to_text(all));
}

} // namespace triax::train
