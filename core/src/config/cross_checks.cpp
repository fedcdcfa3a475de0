// SPDX-License-Identifier: Apache-2.0
// Checks combinations of values that are each valid alone.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.hpp"
#include "config/derive.hpp"
#include "config/duration.hpp"
#include "config/evaluation_check.hpp"
#include "config/generate_check.hpp"
#include "config/metrics_check.hpp"
#include "config/offload_check.hpp"
#include "config/recompute_check.hpp"
#include "config/run_files.hpp"
#include "config/text_file.hpp"
#include "data/dataset.hpp"
#include "data/tokenizer_choice.hpp"
#include "data/tokenizer_difference.hpp"
#include "os/folder_access.hpp"
#include "os/input_file.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;
using Int = std::int64_t;

class Checker {
 public:
  Checker(const Values& values, Purpose purpose, Diagnostics& refusals)
      : values_(values), purpose_(purpose), refusals_(refusals) {}

  void check_batch() {
    const Int *global = integer("batch.global"), *micro = integer("batch.micro"), *data = integer("parallel.data");
    if (!global || !micro || !data || *global % (*micro * *data) == 0) return;
    const Int unit = *micro * *data, below = *global / unit * unit;
    std::string hint =
        below > 0 ? text("use batch.global {} or {}", below, below + unit) : text("use batch.global {}", unit);
    if (*global % *data == 0) hint += text(", or batch.micro {}", divisor_below(*global / *data, *micro));
    refuse(
        make_refusal(ErrorCode::kNotDivisible, {"batch.global", "parallel.data", "batch.micro"},
                     "batch.global = {} is not divisible by parallel.data = {} x batch.micro = {}: each data rank runs "
                     "whole microbatches",
                     *global, *data, *micro)
            .with_hint("{}", hint));
  }

  void check_split() {
    const auto* split = values_.find<std::vector<Int>>("parallel.split");
    const Int *pipeline = integer("parallel.pipeline"), *chunks = integer("parallel.chunks");
    if (!split || split->empty() || !pipeline || !chunks) return;
    const Int stages = *pipeline * *chunks, listed = static_cast<Int>(split->size());
    if (listed == stages) return;
    refuse(make_refusal(ErrorCode::kConflict, {"parallel.split", "parallel.pipeline", "parallel.chunks"},
                        "parallel.split lists {} stages, but parallel.pipeline = {} x parallel.chunks = {} makes {}",
                        listed, *pipeline, *chunks, stages)
               .with_hint("list one number of blocks for each stage, or leave split out"));
  }

  template <class Value>
  void check_per_stage(const char* key) {
    const auto* listed = values_.find<std::vector<Value>>(key);
    const Int *pipeline = integer("parallel.pipeline"), *chunks = integer("parallel.chunks");
    if (!listed || !pipeline || !chunks || static_cast<Int>(listed->size()) == *pipeline * *chunks) return;
    refuse(make_refusal(ErrorCode::kConflict, {key, "parallel.pipeline", "parallel.chunks"},
                        "{} lists values for {} stages, but parallel.pipeline = {} x parallel.chunks = {} makes {}",
                        key, listed->size(), *pipeline, *chunks, *pipeline * *chunks)
               .with_hint("list one value for each stage, or write one value for all"));
  }

  void check_learning_rate() {
    const auto *lowest = values_.find<double>("lr.min"), *highest = values_.find<double>("optimizer.lr");
    const auto* decay = values_.find<std::string>("lr.decay");
    if (decay && *decay == "constant" && lowest && *lowest != 0)
      return no_effect("lr.min", "lr.decay", "lr.decay = \"constant\"", "use lr.decay cosine or linear");
    if (lowest && highest && *lowest > *highest) {
      refuse(make_refusal(ErrorCode::kOutOfRange, {"lr.min", "optimizer.lr"},
                          "lr.min must be at most optimizer.lr = {}, got {}: the learning rate would rise", *highest,
                          *lowest));
    }
  }

  void check_loss_scale() {
    const auto* precision = values_.find<std::string>("train.precision");
    if (!precision) return;
    if (*precision != kScaledPrecision) {
      for (const char* key : {"loss_scale.initial", "loss_scale.constant", "loss_scale.min", "loss_scale.window_steps",
                              "loss_scale.hysteresis"})
        if (values_.has(key))
          no_effect(key, "train.precision", text("train.precision = \"{}\"", *precision), "use train.precision fp16");
      return;
    }
    const auto* constant = values_.find<bool>("loss_scale.constant");
    if (constant && *constant)
      for (const char* key : {"loss_scale.min", "loss_scale.window_steps", "loss_scale.hysteresis"})
        if (values_.has(key))
          no_effect(key, "loss_scale.constant", "loss_scale.constant = true", "write constant = false");
    const auto *lowest = values_.find<double>("loss_scale.min"), *initial = values_.find<double>("loss_scale.initial");
    if (lowest && initial && *lowest > *initial)
      refuse(make_refusal(ErrorCode::kOutOfRange, {"loss_scale.min", "loss_scale.initial"},
                          "loss_scale.min must be at most loss_scale.initial = {}, got {}", *initial, *lowest)
                 .with_hint("use a smaller min, or a larger initial"));
  }

  void check_timeline() {
    const Int *step = integer("log.timeline"), *steps = integer("train.steps");
    if (step && steps && *step > *steps)
      refuse(make_refusal(ErrorCode::kOutOfRange, {"log.timeline", "train.steps"},
                          "log.timeline = {} is after the last step, train.steps = {}", *step, *steps)
                 .with_hint("name a step of the run, or 0 for none"));
  }

  void check_end() {
    const Int *stop = integer("train.stop_at"), *steps = integer("train.steps");
    if (stop && steps && *stop > *steps)
      refuse(make_refusal(ErrorCode::kOutOfRange, {"train.stop_at", "train.steps"},
                          "train.stop_at = {} is after the last step, train.steps = {}", *stop, *steps)
                 .with_hint("name a step of the run, or 0 for the last"));
    const auto* limit = values_.find<std::string>("train.time_limit");
    if (limit && !limit->empty() && !seconds_of(*limit))
      refuse(make_refusal(ErrorCode::kInvalidValue, {"train.time_limit"}, "train.time_limit = \"{}\" is not a time",
                          shortened(printable(*limit)))
                 .with_hint("write whole numbers with d, h, m and s, such as 3h50m or 90s; at most a year"));
  }

  void check_rewind() {
    const auto* nonfinite = values_.find<std::string>("train.nonfinite");
    const Int* every = integer("checkpoint.every");
    if (nonfinite && *nonfinite == "rewind" && every && *every == 0)
      refuse(
          make_refusal(ErrorCode::kMissing, {"train.nonfinite", "checkpoint.every"},
                       "train.nonfinite = \"rewind\" goes back to a checkpoint, but checkpoint.every = 0 writes none "
                       "during the run")
              .with_hint("set checkpoint.every, or train.nonfinite = \"skip\""));
  }

  void check_checkpoints() {
    const Path* from = values_.find<Path>("checkpoint.from");
    const auto* load = values_.find<std::string>("checkpoint.load");
    if (load && *load == "weights" && from && from->empty())
      no_effect("checkpoint.load", "checkpoint.from", "an empty checkpoint.from",
                "name the folder of a checkpoint in checkpoint.from");
  }

  void check_data_files() {
    const bool trains = purpose_ != Purpose::evaluate;
    if (trains && corpora_of(values_, kTraining).paths.empty() && !values_.at(kTraining.path).file.empty())
      refuse(make_refusal(ErrorCode::kMissing, {"data.path"}, "data.path is empty").with_hint("{}", kSetDataPath));
    for (const CorporaKeys& keys : {kTraining, kValidation}) {
      if (!trains && keys.path == kTraining.path) continue;
      weights(keys);
      const Path* path = values_.find<Path>(keys.path);
      if (path && !path->empty()) refuse(token_files(keys.path, *path));
      const auto* paths = values_.find<std::vector<Path>>(keys.paths);
      if (!paths) continue;
      if (!paths->empty() && path && !path->empty())
        refuse(make_refusal(ErrorCode::kConflict, {keys.path, keys.paths}, "{} and {} cannot both be set", keys.path,
                            keys.paths)
                   .with_hint("name all of them in {}", keys.paths));
      std::set<Path> seen;
      Refusals entries;
      for (const Path& each : *paths) {
        if (seen.insert(each).second) {
          entries.add(token_files(keys.paths, each));
        } else {
          entries.add(make_refusal(ErrorCode::kDuplicate, {keys.paths}, "{} names {} twice", keys.paths, each)
                          .with_hint("name it once, with the sum of weights"));
        }
      }
      refuse_entries(keys.paths, paths->size(), entries);
    }
  }

  /// All corpora of a run must have the same tokenizer, if their tokenizer files say which. An evaluation uses those of
  /// training for model.vocab only.
  void check_tokenizers() {
    const bool derived = values_.at("model.vocab").file.empty();
    std::vector<std::pair<const char*, Path>> all;
    for (const CorporaKeys& keys : {kTraining, kValidation}) {
      if (purpose_ == Purpose::evaluate && !derived && keys.path == kTraining.path) continue;
      const auto* paths = values_.find<std::vector<Path>>(keys.paths);
      const char* key = paths && !paths->empty() ? keys.paths : keys.path;
      for (const Path& path : corpora_of(values_, keys).paths) all.emplace_back(key, path);
    }
    const std::size_t training = corpora_of(values_, kTraining).paths.size();
    std::optional<data::TokenizerInfo> first;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [key, path] = all[i];
      std::error_code unreadable;
      const bool has_summary = std::filesystem::exists(data::beside(path, ".json"), unreadable);
      if (!std::filesystem::exists(data::beside(path, ".bin"), unreadable)) continue; // already reported
      const bool must_differ = derived && i > 0 && i < training;
      if (!has_summary && !must_differ) continue;
      if (!derived && !data::names_tokenizer(path)) continue;
      try {
        const data::TokenizerInfo info = data::read_tokenizer_info(path);
        if (!first) first = info;
        if (info.vocab == first->vocab && info.digest == first->digest) continue;
        refuse(make_refusal(ErrorCode::kConflict, {key}, "{}: {}", key,
                            data::different_tokenizers(path, info, all.front().second, *first))
                   .with_hint("prepare all of a run's corpora with one tokenizer"));
      } catch (const Error& error) {
        if (i == 0 && derived) continue; // reported by model.vocab
        const std::string hint =
            derived ? error.hint() : text("{}\n  or remove the file, because model.vocab is set", how_to_prepare(path));
        refuse(make_refusal(ErrorCode::kNotReadable, {key}, "{}: {}: {}", key, error.where(), error.message())
                   .with_hint("{}", hint));
      }
    }
  }

  void check_plugin_folders() {
    refuse(plugin::check_environment());
    const auto* folders = values_.find<std::vector<Path>>("plugins.path");
    if (!folders) return;
    for (const Path& folder : *folders) {
      std::error_code unreadable;
      if (!std::filesystem::is_directory(folder, unreadable))
        refuse(make_refusal(ErrorCode::kNotFound, {"plugins.path"}, "plugins.path: {} is not a folder",
                            folder.empty() ? "\"\"" : shortened(folder.string()))
                   .with_hint("name folders that hold plugins"));
    }
  }

  void check_run_folder() {
    const Path* folder = values_.find<Path>("run.dir");
    for (const char* key : {"run.dir", "log.metrics"}) {
      const Path* path = values_.find<Path>(key);
      if (path && path->empty())
        refuse(make_refusal(ErrorCode::kMissing, {key}, "{} is empty", key).with_hint("name it, or leave {} out", key));
    }
    if (purpose_ == Purpose::evaluate || purpose_ == Purpose::generate) return; // reads only
    if (folder && !folder->empty()) writable("run.dir", *folder, *folder);
    const Path* metrics = values_.find<Path>("log.metrics");
    if (!metrics || metrics->empty()) return;
    std::error_code unreadable;
    if (std::filesystem::is_directory(*metrics, unreadable)) {
      refuse(make_refusal(ErrorCode::kNotWritable, {"log.metrics"}, "log.metrics = \"{}\" is a folder", *metrics)
                 .with_hint("name a file"));
    } else if (!folder || metrics->parent_path() != *folder) {
      writable("log.metrics", *metrics, metrics->parent_path());
    }
    if (folder && metrics->parent_path() == *folder && is_run_file(metrics->filename().native())) {
      return refuse(make_refusal(ErrorCode::kConflict, {"log.metrics"},
                                 "log.metrics = \"{}\" is a file that the run itself writes", *metrics)
                        .with_hint("name another file, or leave it out: metrics.jsonl in run.dir"));
    }
    if (is_not_a_metrics_file(*metrics)) {
      refuse(make_refusal(ErrorCode::kAlreadyExists, {"log.metrics"},
                          "log.metrics = \"{}\" exists and is not a metrics file", *metrics)
                 .with_hint("name another file"));
    }
  }

  void refuse(const Refusals& answers) {
    if (answers.empty()) return;
    if (!listed_) listed_ = values_.list(); // as long as all values together
    for (const Refusal& answer : answers) {
      Diagnostic refused = diagnose(answer, *listed_);
      const Position at = refused.at;
      refusals_.add(at, std::move(refused));
    }
  }

  /// resolved.toml must be able to hold every value.
  void check_encoding() {
    for (const std::string& key : values_.not_utf8()) {
      if (key == "log.metrics" && values_.at(key).file.empty()) continue; // derived from run.dir
      refuse(make_refusal(ErrorCode::kMalformed, {key}, "{} is not valid UTF-8, as TOML requires", key)
                 .with_hint("use a name of valid UTF-8, in a folder with such a name"));
    }
  }

 private:
  const Int* integer(const char* key) const { return values_.find<Int>(key); }

  std::string how_to_prepare(const Path& prefix) const {
    const Path* from = values_.find<Path>("checkpoint.from");
    return data::how_to_prepare(prefix, from ? *from : Path());
  }

  void no_effect(const char* key, const char* because, const std::string& with, const char* otherwise) {
    refuse(make_refusal(ErrorCode::kConflict, {key, because}, "{} has no effect with {}", key, with)
               .with_hint("leave it out, or {}", otherwise));
  }

  void weights(const CorporaKeys& keys) {
    const auto* paths = values_.find<std::vector<Path>>(keys.paths);
    const auto* weights = values_.find<std::vector<double>>(keys.weights);
    if (!paths || !weights || weights->empty()) return;
    if (weights->size() != paths->size()) {
      refuse(make_refusal(ErrorCode::kConflict, {keys.weights, keys.paths},
                          "{} has {} number{}, but {} names {} corp{}", keys.weights, weights->size(),
                          weights->size() == 1 ? "" : "s", keys.paths, paths->size(), paths->size() == 1 ? "us" : "ora")
                 .with_hint("write one for each, or leave {} out to weigh each by its number of tokens", keys.weights));
    }
    Refusals entries;
    for (const double weight : *weights) {
      if (weight <= 0)
        entries.add(make_refusal(ErrorCode::kOutOfRange, {keys.weights}, "{} contains {}: a weight must be above 0",
                                 keys.weights, weight)
                        .with_hint("remove the corpora that you do not want"));
    }
    refuse_entries(keys.weights, weights->size(), entries);
  }

  Refusals token_files(const char* key, const Path& prefix) {
    if (prefix.empty()) return make_refusal(ErrorCode::kMissing, {key}, "{} has an empty name", key);
    if (purpose_ == Purpose::plan && values_.has("model.vocab") && is_absent(prefix))
      return {}; // in LoadResult::unchecked
    for (const char* ending : {".bin", ".idx"}) {
      const Path file = data::beside(prefix, ending);
      const std::string problem = os::why_not_a_file(file);
      if (problem.empty()) continue;
      const std::string permission = os::permission_hint(file);
      const bool with_ending = prefix.extension() == ".bin" || prefix.extension() == ".idx";
      const bool can_plan = purpose_ == Purpose::plan && !values_.has("model.vocab") && is_absent(prefix);
      const std::string prepare = how_to_prepare(prefix) + (can_plan ? kPlanWithoutData : "");
      return make_refusal(code_of_unreadable(file), {key}, "{}: {} {}", key, file, problem)
          .with_hint("{}", !permission.empty() ? permission
                           : with_ending       ? text("leave out {}: the key names all files of a corpus at once",
                                                      prefix.extension().string())
                                               : prepare);
    }
    return {};
  }

  /// The first refusals of the entries of a list, and how many more there are.
  void refuse_entries(const char* key, std::size_t entries, const Refusals& answers) {
    constexpr std::size_t kMaxShown = 3;
    Refusals shown;
    for (const Refusal& answer : answers)
      if (shown.size() < kMaxShown || answers.size() == kMaxShown + 1) shown.add(answer);
    if (answers.size() > shown.size())
      shown.add(make_refusal(answers[shown.size()].code, {key}, "{}: {} more of its {} entries are refused", key,
                             answers.size() - shown.size(), entries)
                    .with_hint("correct the entries above: the others are then reported"));
    refuse(shown);
  }

  static Int divisor_below(Int number, Int limit) {
    Int divisor = std::min(number, limit);
    while (number % divisor != 0) --divisor;
    return divisor;
  }

  void writable(const char* key, const Path& path, const Path& folder) {
    if (const std::string problem = os::why_not_writable(folder); !problem.empty())
      refuse(make_refusal(ErrorCode::kNotWritable, {key}, "{} = \"{}\" cannot be written: {}", key, path, problem)
                 .with_hint("choose another folder with {}", key));
  }

  const Values& values_;
  const Purpose purpose_;
  Diagnostics& refusals_;
  std::optional<std::vector<ResolvedValue>> listed_; // values_ as a list, from the first refusal on
};

} // namespace

void cross_check(const Values& values, Purpose purpose, Diagnostics& refusals) {
  Checker checker(values, purpose, refusals);
  if (purpose == Purpose::generate) {
    checker.refuse(check_generating(values));
  } else {
    checker.check_batch();
  }
  checker.check_split();
  checker.check_per_stage<std::string>("memory.recompute");
  checker.check_per_stage<Int>("memory.recompute_layers");
  checker.refuse(check_recompute(values));
  checker.refuse(check_offload(values));
  checker.check_learning_rate();
  checker.check_loss_scale();
  checker.check_timeline();
  checker.check_end();
  if (purpose != Purpose::schedule && purpose != Purpose::generate) {
    checker.refuse(check_evaluation(values, purpose));
    checker.check_rewind();
    checker.check_checkpoints();
    checker.check_data_files();
    checker.check_tokenizers();
  }
  checker.check_plugin_folders();
  checker.check_run_folder();
  checker.check_encoding();
}

} // namespace triax::config
