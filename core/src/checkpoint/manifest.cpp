// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.hpp"

#include <algorithm>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

#include "base/bytes_text.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/strict_json.hpp"
#include "checksum/checksum.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::checkpoint {

namespace {

constexpr const char* kFormat = "triax-checkpoint";
constexpr std::uint64_t kMaxManifest = std::uint64_t{1} << 30;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40; // times the positions of a sample, it fits into 64 bits

std::string hint_of(const std::filesystem::path& manifest) {
  return damaged_hint(manifest.parent_path());
}

/// A value of a JSON text, with its place for errors: "tensors[3].pieces[0].file".
class Value {
 public:
  Value(const Json& json, std::string from, std::string path = {})
      : json_(json), from_(std::move(from)), path_(std::move(path)) {}

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  Value at(const char* key) const {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    if (found == json_.end() || !json_.is_object()) fail(text("has no \"{}\"", key));
    return {*found, from_, path_.empty() ? key : path_ + "." + key};
  }
  std::vector<Value> list() const {
    if (!json_.is_array()) fail("is not a list");
    std::vector<Value> out;
    out.reserve(json_.size());
    for (std::size_t i = 0; i < json_.size(); ++i) out.push_back({json_[i], from_, text("{}[{}]", path_, i)});
    return out;
  }
  std::map<std::string, Value> object() const {
    if (!json_.is_object()) fail("is not an object");
    std::map<std::string, Value> out;
    for (const auto& [key, value] : json_.items()) out.insert({key, Value(value, from_, path_ + "." + key)});
    return out;
  }
  std::string string() const {
    if (!json_.is_string()) fail("is not a text");
    return json_.get<std::string>();
  }
  /// At least 0.
  std::int64_t whole() const {
    if (!json_.is_number_unsigned() || json_.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      fail("is not a whole number of at least 0");
    return json_.get<std::int64_t>();
  }
  /// A number of steps or samples.
  std::int64_t count() const {
    if (whole() > kMaxCount) fail("is too large");
    return whole();
  }
  std::int32_t small() const {
    if (whole() > INT32_MAX) fail("is too large");
    return static_cast<std::int32_t>(whole());
  }
  double number() const {
    if (!json_.is_number()) fail("is not a number");
    return json_.get<double>();
  }
  Shape shape() const {
    const std::optional<Shape> out = shape_of(json_);
    if (!out) fail(text("is not a list of at most {} sizes", kMaxRank));
    return *out;
  }
  const std::string& from() const { return from_; }
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(text("{} {}", path_.empty() ? "the manifest" : printable(path_), why), from_, hint_of(from_));
  }

 private:
  const Json& json_;
  std::string from_, path_;
};

/// A file of the folder itself.
std::string local_name(const Value& value) {
  std::string name = value.string();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.') ||
      std::ranges::any_of(name, is_control))
    value.fail("is not a file's name");
  return name;
}

Json json_of(const Piece& piece) {
  return {{"file", piece.file},
          {"key", piece.key},
          {"begin", to_json(piece.begin)},
          {"size", to_json(piece.size)},
          {"xxh3_128", piece.checksum}};
}

Piece piece_of(const Value& value, const Shape& whole) {
  Piece out{local_name(value.at("file")), value.at("key").string(), value.at("begin").shape(), value.at("size").shape(),
            value.at("xxh3_128").string()};
  if (out.begin.rank() != whole.rank() || out.size.rank() != whole.rank())
    value.fail("has other dimensions than the tensor");
  for (int dim = 0; dim < whole.rank(); ++dim)
    if (out.begin[dim] + out.size[dim] > whole[dim]) value.fail("is not inside the tensor");
  return out;
}

void put(Json& out, const SavedPart& part) {
  Json files = Json::array(), tensors = Json::array();
  for (const SavedFile& file : part.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"header_xxh3_128", file.header_checksum}});
  for (const SavedTensor& tensor : part.tensors) {
    Json pieces = Json::array();
    for (const Piece& piece : tensor.pieces) pieces.push_back(json_of(piece));
    tensors.push_back({{"parameter", tensor.parameter},
                       {"state", tensor.state},
                       {"dtype", safetensors_name(tensor.dtype)},
                       {"shape", to_json(tensor.shape)},
                       {"pieces", std::move(pieces)}});
  }
  out["files"] = std::move(files);
  out["tensors"] = std::move(tensors);
}

SavedPart part_of(const Value& value) {
  SavedPart out;
  for (const Value& file : value.at("files").list())
    out.files.push_back({local_name(file.at("name")), static_cast<std::uint64_t>(file.at("bytes").whole()),
                         file.at("header_xxh3_128").string()});
  for (const Value& tensor : value.at("tensors").list()) {
    SavedTensor read{
        tensor.at("parameter").string(), tensor.at("state").string(), DType::f32, tensor.at("shape").shape(), {}};
    const std::optional<DType> type = type_of_safetensors(tensor.at("dtype").string());
    if (!type) tensor.at("dtype").fail("is not a type that this version knows");
    read.dtype = *type;
    for (const Value& piece : tensor.at("pieces").list()) read.pieces.push_back(piece_of(piece, read.shape));
    out.tensors.push_back(std::move(read));
  }
  return out;
}

Json parse(std::string_view json, const std::string& from) {
  Json out;
  if (const std::string problem = parse_strict(json, out); !problem.empty()) throw Error(problem, from, hint_of(from));
  return out;
}

Json json_of(const TrainingState& state) {
  Json out = {{"step", state.step},
              {"samples", state.samples},
              {"optimizer_steps", state.optimizer_steps},
              {"loss_scale", state.loss_scale},
              {"good_steps", state.good_steps},
              {"hysteresis", state.hysteresis}};
  if (!state.plugins.empty()) out["plugins"] = state.plugins;
  return out;
}

TrainingState training_of(const Value& value) {
  TrainingState out = {value.at("step").count(),
                       value.at("samples").count(),
                       value.at("optimizer_steps").count(),
                       value.at("loss_scale").number(),
                       value.at("good_steps").small(),
                       value.at("hysteresis").small(),
                       {}};
  if (!(out.loss_scale > 0 && out.loss_scale <= static_cast<double>(std::numeric_limits<float>::max())))
    value.at("loss_scale").fail("is not a positive fp32 number");
  if (value.has("plugins"))
    for (const auto& [use, state] : value.at("plugins").object()) out.plugins[use] = state.string();
  return out;
}

Json json_of(const std::vector<CorpusContent>& corpora) {
  Json out = Json::array();
  for (const CorpusContent& corpus : corpora) {
    out.push_back({{"tokens", corpus.tokens}, {"xxh3_128", corpus.checksum}});
    if (const std::optional<SavedTokenizer>& of = corpus.tokenizer)
      out.back()["tokenizer"] = {{"kind", of->kind}, {"vocab", of->vocab}, {"digest", of->digest}};
  }
  return out;
}

std::vector<CorpusContent> corpora_of(const Value& value) {
  std::vector<CorpusContent> out;
  for (const Value& corpus : value.list()) {
    out.push_back({corpus.at("tokens").whole(), corpus.at("xxh3_128").string(), {}});
    if (!corpus.has("tokenizer")) continue;
    const Value of = corpus.at("tokenizer");
    out.back().tokenizer = {of.at("kind").string(), of.at("vocab").whole(), of.at("digest").string()};
  }
  return out;
}

/// The checksum of everything but the checksum itself.
std::string checksum_of(Json manifest) {
  manifest.erase("checksum");
  const std::string json = manifest.dump(1, ' ', false, Json::error_handler_t::replace);
  Checksum out;
  out.add(std::as_bytes(std::span(json)));
  return out.text();
}

Manifest manifest_of(const Value& top) {
  if (top.at("format").string() != kFormat) top.at("format").fail(text("is not \"{}\"", kFormat));
  const std::int64_t version = top.at("version").whole();
  if (version < 1) top.at("version").fail("is not a version");
  if (version > kManifestVersion)
    throw Error(text("has version {} of the format, but this program reads up to {}", version, kManifestVersion),
                top.from(), "use the version of Triax that wrote it, or a later one");
  Manifest out;
  out.training = training_of(top.at("training"));
  out.tokens = top.at("tokens").whole();
  out.created = top.at("created").string();
  out.engine = top.at("engine").string();
  for (const auto& [key, value] : top.at("plugins").object()) out.plugins[key] = value.string();
  for (const auto& [key, value] : top.at("layout").object()) out.layout[key] = value.small();
  for (const auto& [key, value] : top.at("config").object()) out.config[key] = value.string();
  if (top.has("data")) // else an earlier version wrote it
    out.data = {corpora_of(top.at("data").at("training")), corpora_of(top.at("data").at("validation"))};
  out.content = part_of(top);
  if (top.has("mean_of"))
    for (const Value& folder : top.at("mean_of").list()) out.mean_of.push_back(folder.string());
  return out;
}

/// Names the folder, which the user named, and not the file in it.
void require_checkpoint(const std::filesystem::path& folder) {
  std::error_code unknown;
  if (std::filesystem::symlink_status(folder / kManifestFile, unknown).type() != std::filesystem::file_type::not_found)
    return; // also if that is unknown: opening the file reports why
  if (std::filesystem::symlink_status(folder, unknown).type() == std::filesystem::file_type::not_found)
    throw Error("does not exist", folder.string(), "name a folder step-N of a run's checkpoints");
  throw Error(text("is not a checkpoint: it has no {}", kManifestFile), folder.string(),
              text("name a folder step-N; a save that was interrupted has no {}", kManifestFile));
}

} // namespace

std::string name_of(const SavedTensor& tensor) {
  return text("{} ({})", tensor.parameter, tensor.state);
}

std::uint64_t total_bytes(const SavedPart& part) {
  std::uint64_t out = 0;
  for (const SavedFile& file : part.files) out += file.bytes;
  return out;
}

std::string creation_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char out[32];
  return {out, std::strftime(out, sizeof out, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string to_json(const SavedPart& part) {
  Json out = Json::object();
  put(out, part);
  return out.dump();
}

SavedPart part_from_json(std::string_view json, const std::string& from) {
  const Json parsed = parse(json, from);
  return part_of(Value(parsed, from));
}

std::string to_json(const Manifest& manifest) {
  Json out = {{"format", kFormat},
              {"version", kManifestVersion},
              {"created", manifest.created},
              {"engine", manifest.engine},
              {"training", json_of(manifest.training)},
              {"tokens", manifest.tokens},
              {"plugins", manifest.plugins},
              {"layout", manifest.layout},
              {"config", manifest.config}};
  if (const DataContent& data = manifest.data; !data.training.empty() || !data.validation.empty())
    out["data"] = {{"training", json_of(data.training)}, {"validation", json_of(data.validation)}};
  if (!manifest.mean_of.empty()) out["mean_of"] = manifest.mean_of;
  put(out, manifest.content);
  out["checksum"] = checksum_of(out);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Manifest read_manifest(const std::filesystem::path& path) {
  require_checkpoint(path.parent_path());
  const os::InputFile file(path, "name a folder step-N");
  if (file.bytes() > kMaxManifest)
    throw Error(text("has {}, but at most {} are read", bytes_text(file.bytes()), bytes_text(kMaxManifest)),
                path.string(), hint_of(path));
  std::string bytes(file.bytes(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  const Json parsed = parse(bytes, path.string());
  const Value top(parsed, path.string());
  Manifest out = manifest_of(top);
  if (top.at("checksum").string() != checksum_of(parsed))
    throw Error("checksum mismatch", path.string(), hint_of(path));
  check_whole(out.content, path.string()); // may take long for what no program wrote
  const std::optional<std::int64_t> step = step_of(path.parent_path().filename().string());
  if (step && *step != out.training.step)
    throw Error(text("says step {}, but its folder is named for step {}", out.training.step, *step), path.string(),
                "give the folder its own name, or use another checkpoint");
  return out;
}

} // namespace triax::checkpoint
