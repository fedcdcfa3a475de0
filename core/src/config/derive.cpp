// SPDX-License-Identifier: Apache-2.0
#include "config/derive.hpp"

#include "config/text_file.hpp"
#include "data/dataset.hpp"
#include "data/tokenizer_choice.hpp"

namespace triax::config {

namespace {

using Path = std::filesystem::path;

void derive_files(Values& values, const Path& file) {
  // In the working folder, not beside the TOML: the user may not have write permission beside an installed example. The
  // name of a pipe (/dev/fd/63) has no meaning.
  const Path name = is_piped(file) ? "pipe" : file.stem();
  if (!values.has("run.dir")) values.set("run.dir", std::filesystem::absolute("runs" / name), "default");
  if (!values.has("log.metrics")) values.set("log.metrics", values.get<Path>("run.dir") / "metrics.jsonl", "default");
}

void derive_data_size(Values& values, std::optional<int> world, Diagnostics& refusals) {
  const auto* pipeline = values.find<std::int64_t>("parallel.pipeline");
  const auto* tensor = values.find<std::int64_t>("parallel.tensor");
  if (!pipeline || !tensor) return;
  const auto* data = values.find<std::int64_t>("parallel.data");
  const std::int64_t one_copy = *pipeline * *tensor;
  if (!data && (!world || *world % one_copy == 0)) {
    values.set("parallel.data", world ? *world / one_copy : std::int64_t{1}, "derived");
  } else if (world && (!data || *world != one_copy * *data)) {
    const std::string copies = data ? text(" x parallel.data = {}", *data) : std::string();
    const auto answer =
        make_refusal(ErrorCode::kConflict, {"parallel.pipeline", "parallel.tensor"},
                     "parallel.pipeline = {} x parallel.tensor = {}{} does not fit the launcher's {} ranks", *pipeline,
                     *tensor, copies, *world);
    Diagnostic refused = diagnose(answer, values.list());
    const Position at = refused.at;
    refusals.add(at, std::move(refused));
  }
}

bool is_there(const data::Corpora& corpora) {
  std::error_code unreadable;
  return !corpora.paths.empty() && std::filesystem::exists(data::beside(corpora.paths.front(), ".bin"), unreadable);
}

void derive_vocab(Values& values, Purpose purpose, Diagnostics& refusals) {
  data::Corpora corpora = corpora_of(values, kTraining);
  if (purpose == Purpose::evaluate && !is_there(corpora)) corpora = corpora_of(values, kValidation);
  if (values.has("model.vocab") || !is_there(corpora)) return; // missing files are reported with the other checks
  try {
    values.set("model.vocab", data::read_tokenizer_info(corpora.paths.front()).vocab, "derived");
  } catch (const Error& error) {
    const Position at = values.at(corpora.key);
    refusals.add(at, make_refusal(ErrorCode::kNotReadable, {corpora.key}, "{}: {}: {}", corpora.key, error.where(),
                                  error.message())
                         .with_hint("{}", error.hint()));
  }
}

/// In fp16 only: resolved.toml is loaded again, and a [loss_scale] without effect is an error.
void derive_loss_scale(Values& values) {
  const auto* precision = values.find<std::string>("train.precision");
  if (!precision || *precision != kScaledPrecision) return;
  const auto set = [&values](const char* key, OptionValue value) {
    if (!values.has(key)) values.set(key, std::move(value), "default");
  };
  set("loss_scale.initial", 65536.0);
  set("loss_scale.constant", false);
  if (const auto* constant = values.find<bool>("loss_scale.constant"); constant && *constant) return;
  set("loss_scale.min", 1.0);
  set("loss_scale.window_steps", std::int64_t{1000});
  set("loss_scale.hysteresis", std::int64_t{2});
}

/// Each key of [data] is optional, but one of these two is required.
void refuse_no_data(const Values& values, const Path& file, Purpose purpose, Diagnostics& refusals) {
  if (purpose == Purpose::schedule || purpose == Purpose::evaluate || purpose == Purpose::generate) return;
  if (purpose == Purpose::plan && values.has("model.vocab")) return;
  const bool refused = !values.has(kTraining.path) || !values.has(kTraining.paths);
  const bool empty = !refused && !values.at(kTraining.path).file.empty(); // path = "" is reported at its line
  if (refused || empty || !corpora_of(values, kTraining).paths.empty()) return;
  const char* otherwise = purpose == Purpose::plan ? kPlanWithoutData : "";
  refusals.add({}, make_refusal(ErrorCode::kMissing, {kTraining.path},
                                "{}: data.path is missing (token files to train on; data.paths: several)", file)
                       .with_hint("{}{}", kSetDataPath, otherwise));
}

} // namespace

data::Corpora corpora_of(const Values& values, const CorporaKeys& keys) {
  data::Corpora out;
  const auto* path = values.find<Path>(keys.path);
  const auto* paths = values.find<std::vector<Path>>(keys.paths);
  const auto* weights = values.find<std::vector<double>>(keys.weights);
  if (paths) out.paths = *paths;
  out.key = keys.paths;
  if (out.paths.empty() && path && !path->empty()) {
    out.paths.push_back(*path);
    out.key = keys.path;
  }
  if (weights) out.weights = *weights;
  return out;
}

bool is_absent(const std::filesystem::path& prefix) {
  const auto absent = [&prefix](const char* ending) {
    std::error_code unreadable;
    return std::filesystem::symlink_status(data::beside(prefix, ending), unreadable).type() ==
           std::filesystem::file_type::not_found;
  };
  return absent(".bin") && absent(".idx");
}

void derive(Values& values, const Path& file, const Intent& intent, Diagnostics& refusals) {
  derive_files(values, file);
  derive_data_size(values, intent.world, refusals);
  if (intent.purpose != Purpose::schedule) derive_vocab(values, intent.purpose, refusals);
  derive_loss_scale(values);
  refuse_no_data(values, file, intent.purpose, refusals);
}

} // namespace triax::config
